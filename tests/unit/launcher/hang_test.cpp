#include "launcher/core/hang_watch.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/launcher/story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::CauseKind;

namespace {

GroupRules hang_after(Duration timeout) {
    GroupRules rules;
    rules.hang_timeout = timeout;
    return rules;
}

WorkerActive step(int worker, int number) {
    return {worker, number, false};
}
WorkerActive heartbeat(int worker) {
    return {worker, -1, false};
}
WorkerActive line(int worker) {
    return {worker, -1, true};
}

// Runs into the hang and lets the inspection end without evidence.
rendezvous::Cause hang_within(GroupStory& story, Duration duration) {
    return one<GroupFailed>(story.wait(duration)).cause;
}

}  // namespace

TEST_CASE("LIFE-11: without --hang-timeout silence means nothing") {
    GroupStory story(2);
    CHECK(story.wait(100h).empty());
}

TEST_CASE("LIFE-11: workers that never say anything hang together after the time-out") {
    GroupStory story(3, hang_after(30s));
    CHECK(story.wait(29s).empty());
    const auto asked = story.wait(1s);
    CHECK(all_of<InspectWorker>(asked).size() == 3);
    const auto cause = hang_within(story, 1s);
    CHECK(cause.kind == CauseKind::hang);
    CHECK(cause.exit_code == 124);
    CHECK(cause.words.find("ranks 0-2 for 30 s") != std::string::npos);
}

TEST_CASE("LIFE-11: one writing rank keeps silent ranks alive, since often only rank 0 logs") {
    GroupStory story(3, hang_after(30s));
    for (int i = 0; i < 20; ++i) {
        CHECK(story.wait(20s).empty());
        CHECK(story.feed(line(0)).empty());
    }
}

TEST_CASE("LIFE-11: of ranks that report steps the one behind is the suspect, not those waiting") {
    GroupStory story(4, hang_after(30s));
    for (int number = 0; number < 10; ++number) {
        for (const int worker : {0, 1, 2, 3}) {
            if (worker != 1 || number < 9) (void)story.feed(step(worker, number));
        }
        (void)story.wait(1s);
    }
    const auto asked = story.wait(30s);
    CHECK(one<InspectWorker>(asked).local_rank == 1);
    CHECK(one<GroupFailed>(asked).cause.failure.rank == 1);
    CHECK(one<GroupFailed>(asked).cause.words.find("last step 8") != std::string::npos);
}

TEST_CASE("LIFE-11: heartbeats without steps do not hide that steps have stopped") {
    GroupStory story(2, hang_after(10s));
    for (const int worker : {0, 1}) (void)story.feed(step(worker, 1));
    WorkerGroup::Actions seen;
    for (int i = 0; i < 12; ++i) {
        (void)story.feed(heartbeat(1));
        for (auto& action : story.wait(1s)) seen.push_back(action);
    }
    CHECK(has<GroupFailed>(seen));
}

TEST_CASE("LIFE-11: at the same step, the rank without a sign of life is the suspect") {
    GroupStory story(3, hang_after(10s));
    for (const int worker : {0, 1, 2}) (void)story.feed(step(worker, 41));
    WorkerGroup::Actions seen;
    for (int i = 0; i < 12; ++i) {
        for (const int waiting : {0, 2}) (void)story.feed(heartbeat(waiting));
        for (auto& action : story.wait(1s)) seen.push_back(action);
    }
    CHECK(one<GroupFailed>(seen).cause.failure.rank == 1);
}

TEST_CASE("LIFE-11: a worker that used to send heartbeats and stopped is a hang of its own") {
    GroupStory story(2, hang_after(10s));
    WorkerGroup::Actions seen;
    (void)story.feed(heartbeat(1));
    for (int i = 0; i < 12; ++i) {
        (void)story.feed(heartbeat(0));
        for (auto& action : story.wait(1s)) seen.push_back(action);
    }
    CHECK(one<GroupFailed>(seen).cause.failure.rank == 1);
}

TEST_CASE("LIFE-11: evidence about the suspect is asked for first and told with the cause") {
    GroupStory story(2, hang_after(10s));
    for (const int worker : {0, 1}) (void)story.feed(step(worker, 1));
    (void)story.wait(5s);
    (void)story.feed(step(0, 2));
    CHECK(one<InspectWorker>(story.wait(5s)).local_rank == 1);
    const auto failed = story.feed(HangEvidence{1, "state S in do_sys_pause"});
    const auto cause = one<GroupFailed>(failed).cause;
    CHECK(cause.words == "no progress and no output from rank 1 for 10 s, last step 1");
    CHECK(cause.failure.reason == "rank 1: state S in do_sys_pause");
}

TEST_CASE("LIFE-11: a suspect that moves again is no suspect") {
    GroupStory story(2, hang_after(10s));
    CHECK(has<InspectWorker>(story.wait(10s)));
    (void)story.feed(line(1));
    CHECK_FALSE(has<GroupFailed>(story.wait(9s)));
    CHECK(has<GroupFailed>(story.wait(2s)));
}

TEST_CASE("LIFE-11: a suspect that exits 0 is no suspect, and the others are watched on") {
    GroupStory story(2, hang_after(10s));
    (void)story.wait(10s);
    CHECK(story.end(1, exited(0)).empty());
    CHECK(has<GroupFailed>(story.wait(11s)));
}

TEST_CASE("LIFE-11: a suspect that fails meanwhile is an ordinary failure") {
    GroupStory story(2, hang_after(10s));
    (void)story.wait(10s);
    CHECK(one<GroupFailed>(story.end(1, exited(6))).cause.exit_code == 6);
}

TEST_CASE("LIFE-11: one rank stopped by a signal is the suspect") {
    GroupStory story(3, hang_after(10s));
    (void)story.feed(WorkerStopped{2, true});
    const auto cause = hang_within(story, 11s);
    CHECK(cause.failure.rank == 2);
    CHECK(cause.words.find("stopped by a signal") != std::string::npos);
}

TEST_CASE("LIFE-11: when all ranks are stopped, somebody wants them so") {
    GroupStory story(2, hang_after(10s));
    for (const int worker : {0, 1}) (void)story.feed(WorkerStopped{worker, true});
    CHECK(story.wait(1h).empty());
    for (const int worker : {0, 1}) (void)story.feed(WorkerStopped{worker, false});
    CHECK(story.wait(9s).empty());
    CHECK(has<GroupFailed>(story.wait(2s)));
}

TEST_CASE("LIFE-11: SIGSTOP of ddrun itself, or of the whole node, is not a hang") {
    GroupStory story(2, hang_after(10s));
    (void)story.wait(1s);
    story.sleep(5min);
    CHECK(story.wait(9s).empty());
    CHECK(has<GroupFailed>(story.wait(2s)));
}

TEST_CASE("LIFE-11: after Ctrl-Z and fg the clocks start again") {
    GroupStory story(2, hang_after(10s));
    (void)story.wait(9s);
    (void)story.feed(Suspend{});
    story.sleep(1h);
    (void)story.feed(Resume{});
    CHECK(story.wait(9s).empty());
    CHECK(has<GroupFailed>(story.wait(2s)));
}

TEST_CASE("finished workers are not suspects") {
    GroupStory story(2, hang_after(10s));
    (void)story.feed(step(0, 1));
    (void)story.end(0, exited(0));
    CHECK(hang_within(story, 11s).failure.rank == 1);
}

TEST_CASE("more suspects than are worth inspecting: a few are, all are named") {
    GroupStory story(64, hang_after(10s));
    CHECK(all_of<InspectWorker>(story.wait(10s)).size() == 4);
    CHECK(hang_within(story, 1s).words.find("ranks 0-63") != std::string::npos);
}

TEST_CASE("a watch without workers has no deadline") {
    HangWatch watch(10s, 2);
    CHECK_FALSE(watch.deadline());
    CHECK(watch.suspects(TimePoint::max()).empty());
}
