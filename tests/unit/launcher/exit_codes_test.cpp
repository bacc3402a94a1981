#include "tests/support/catch.hpp"
#include "tests/unit/launcher/agent_story.hpp"

#include <functional>

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::FailureReport;
using rendezvous::Leave;

// The exit-code table of ddrun, row by row: what happens on a node, and the code its cause carries.
// (2, 75 and 77 are decided elsewhere: before a job begins, and where the group is formed.)
namespace {

int code_of_failure(const std::function<Agent::Actions(AgentStory&)>& happen,
                    AgentRules rules = {}) {
    AgentStory story(2, rules);
    story.running();
    const auto reports = said<FailureReport>(happen(story));
    REQUIRE(reports.size() == 1);
    return reports[0].cause.exit_code;
}

int code_of_end(ExitStatus status) {
    return code_of_failure([&](AgentStory& story) {
        auto actions = story.end(1, status);
        for (auto& action : story.wait(250ms)) actions.push_back(std::move(action));
        return actions;
    });
}

int code_of_refusal(int exit_code) {
    AgentStory story(2);
    (void)story.join();
    (void)story.hear(rendezvous::RoundGranted{});
    const auto refused = WorkerNotStarted{0, "./x: refused", exit_code};
    return said<FailureReport>(story.group(refused)).at(0).cause.exit_code;
}

}  // namespace

TEST_CASE("golden: exit codes of ddrun") {
    for (const int code : {1, 2, 3, 15, 42, 70, 71, 75, 77, 124, 126, 127, 130, 143, 255}) {
        CHECK(code_of_end(exited(code)) == code);
    }
    for (const int signal : {1, 2, 4, 6, 7, 8, 9, 11, 13, 15, 31, 34, 64}) {
        CHECK(code_of_end(killed_by(signal)) == 128 + signal);
    }
    CHECK(code_of_end(exited(93)) == 93);
    CHECK(code_of_failure([](AgentStory& story) {
              (void)story.group(WorkerSaidNeverRetry{1, "bad data"});
              return story.end(1, killed_by(6));
          }) == 93);

    AgentRules timers;
    timers.group.hang_timeout = 10s;
    CHECK(code_of_failure([](AgentStory& story) { return story.wait(12s); }, timers) == 124);
    AgentRules early;
    early.group.early_exit_timeout = 10s;
    CHECK(code_of_failure(
              [](AgentStory& story) {
                  (void)story.end(0, exited(0));
                  return story.wait(12s);
              },
              early) == 124);

    CHECK(code_of_refusal(126) == 126);
    CHECK(code_of_refusal(127) == 127);
    CHECK(code_of_refusal(71) == 71);
    CHECK(code_of_failure([](AgentStory& story) {
              return story.feed(ShellFailed{70, "bug"});
          }) == 70);
    CHECK(code_of_failure([](AgentStory& story) { return story.feed(KeeperLost{"killed"}); }) ==
          71);
    CHECK(code_of_failure([](AgentStory& story) {
              (void)story.signal(15);
              (void)story.signal(2);
              return story.group(ProcessStuck{7, 0, "cat", "nfs"});
          }) == 71);

    for (const auto& [signal, code] : {std::pair{15, 143}, {2, 130}, {1, 129}, {3, 131}}) {
        AgentStory story(2);
        story.running();
        CHECK(said<Leave>(story.signal(signal)).at(0).cause.exit_code == code);
    }
}
