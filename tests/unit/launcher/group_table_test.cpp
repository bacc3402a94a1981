#include "tests/support/catch.hpp"
#include "tests/unit/launcher/story.hpp"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

// Every state of a worker group meets every event; the answers are the table in launcher/README.md.
// After a change: DDRUN_UPDATE_DOCUMENTS=1 unit_launcher "[documents]", and the difference is there
// to read.
using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;

namespace {

// Three workers; rank 0 is what the events are about, the other two keep the round going.
GroupStory in_state(const std::string& state) {
    GroupRules rules;
    rules.hang_timeout = 60s;
    GroupStory story(3, rules);
    if (state == "suspecting") (void)story.wait(60s);
    if (state == "doubtful") (void)story.end(2, killed_by(15));
    if (state == "failed") (void)story.end(2, exited(1));
    if (state == "stopping") (void)story.feed(StopGroup{});
    if (state == "clearing" || state == "unfit") (void)story.feed(KillGroup{});
    if (state == "unfit") (void)story.feed(ProcessStuck{100, 0, "cat", "nfs"});
    return story;
}

std::string state_of(const GroupStory& story) {
    const std::string asleep = "suspended ";
    const auto words = story.group().describe();
    const auto from = words.rfind(asleep, 0) == 0 ? asleep.size() : 0;
    return words.substr(from, words.find(',') - from);
}

struct Event {
    std::string name;
    std::function<WorkerGroup::Actions(GroupStory&)> happen;
};

std::function<WorkerGroup::Actions(GroupStory&)> feeding(const GroupEvent& event) {
    return [event](GroupStory& story) { return story.feed(event); };
}

WorkerGroup::Actions end_of_all(GroupStory& story, ExitStatus status) {
    return story.end_all({0, 1, 2}, status);
}

const std::vector<Event>& events() {
    static const std::vector<Event> rows = {
        {"exit 0", feeding(WorkerExited{0, exited(0), {}})},
        {"bad exit", feeding(WorkerExited{0, exited(1), {}})},
        {"death by TERM", feeding(WorkerExited{0, killed_by(15), {}})},
        {"all exit 0", [](GroupStory& story) { return end_of_all(story, exited(0)); }},
        {"WorkerStopped", feeding(WorkerStopped{0, true})},
        {"WorkerActive", feeding(WorkerActive{0, 1, false})},
        {"WorkerBlamed", feeding(WorkerBlamed{0, 1, ""})},
        {"WorkerSaidNeverRetry", feeding(WorkerSaidNeverRetry{0, ""})},
        {"HangEvidence, the last",
         [](GroupStory& story) {
             (void)story.feed(HangEvidence{0, ""});
             (void)story.feed(HangEvidence{1, ""});
             return story.feed(HangEvidence{2, ""});
         }},
        {"StopGroup", feeding(StopGroup{})},
        {"KillGroup", feeding(KillGroup{})},
        {"ForwardSignal", feeding(ForwardSignal{10})},
        {"Suspend", feeding(Suspend{})},
        {"TreesGone", feeding(TreesGone{})},
        {"ProcessStuck", feeding(ProcessStuck{100, 0, "cat", "nfs"})},
        {"deadline",
         [](GroupStory& story) {
             const auto due = story.group().next_deadline();
             return due ? story.wait(*due - story.now()) : WorkerGroup::Actions{};
         }},
    };
    return rows;
}

std::string name_of(const GroupOutput& action) {
    struct Names {
        std::string operator()(const StartWorkers&) { return "StartWorkers"; }
        std::string operator()(const SignalWorkers&) { return "signal"; }
        std::string operator()(const TellWorkersToStop&) { return "tell SDK"; }
        std::string operator()(const TellWorkersAborted&) { return {}; }  // comes with GroupFailed
        std::string operator()(const KillTrees&) { return "KillTrees"; }
        std::string operator()(const CleanUpAfter&) { return "CleanUpAfter"; }
        std::string operator()(const InspectWorker&) { return "InspectWorker"; }
        std::string operator()(const Note&) { return "note"; }
        std::string operator()(const GroupFailed&) { return "**failed**"; }
        std::string operator()(const GroupSucceeded&) { return "succeeded"; }
        std::string operator()(const GroupGone&) { return {}; }  // the arrow says it
        std::string operator()(const StepReached&) { return "StepReached"; }
        std::string operator()(const SuspendWorkers&) { return "SuspendWorkers"; }
        std::string operator()(const NodeUnfit&) { return "NodeUnfit"; }
    };
    return std::visit(Names{}, action);
}

std::string answer(const std::string& state, const Event& event) {
    auto story = in_state(state);
    std::string words;
    for (const auto& action : event.happen(story)) {
        const auto name = name_of(action);
        if (name.empty() || words.find(name) != std::string::npos) continue;
        words += (words.empty() ? "" : ", ") + name;
    }
    const auto after = state_of(story);
    if (after != state) words += (words.empty() ? "→ " : " → ") + after;
    return words.empty() ? "–" : words;
}

std::string table() {
    const std::vector<std::string> states = {"running",  "suspecting", "doubtful", "failed",
                                             "stopping", "clearing",   "unfit"};
    std::string head = "| event |", line = "| --- |", rows;
    for (const auto& state : states) {
        REQUIRE(state_of(in_state(state)) == state);
        head += " " + state + " |";
        line += " --- |";
    }
    for (const auto& event : events()) {
        rows += "| " + event.name + " |";
        for (const auto& state : states) rows += " " + answer(state, event) + " |";
        rows += "\n";
    }
    return head + "\n" + line + "\n" + rows;
}

std::string read_whole(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("every state of a worker group answers every event as the README says", "[documents]") {
    const std::string path = DDRUN_SOURCE_DIR "/launcher/README.md";
    const std::string begin = "<!-- worker group: begin -->\n", end = "<!-- worker group: end -->";
    const auto whole = read_whole(path);
    const auto first = whole.find(begin), last = whole.find(end);
    REQUIRE(first != std::string::npos);
    REQUIRE(last != std::string::npos);
    const auto start = first + begin.size();
    if (std::getenv("DDRUN_UPDATE_DOCUMENTS") != nullptr) {
        std::ofstream(path) << whole.substr(0, start) << table() << whole.substr(last);
    }
    const auto now = read_whole(path);
    CHECK(now.substr(start, now.find(end) - start) == table());
}
