#include "launcher/core/worker_group.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/launcher/story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::CauseKind;

TEST_CASE("a group starts all its workers with one action") {
    WorkerGroup group(GroupRules{});
    const auto actions = group.start(TimePoint{});
    CHECK(actions.size() == 1);
    CHECK(has<StartWorkers>(actions));
    CHECK(group.start(TimePoint{}).empty());
    CHECK(group.anyone_left());
}

TEST_CASE("OK: when every worker exited 0, the trees are cleared and the group has succeeded") {
    GroupStory story(2);
    CHECK(story.end(0, exited(0)).empty());
    CHECK(has<KillTrees>(story.end(1, exited(0))));
    const auto last = story.feed(TreesGone{});
    REQUIRE(last.size() == 2);
    CHECK(std::holds_alternative<GroupSucceeded>(last[0]));
    CHECK(std::holds_alternative<GroupGone>(last[1]));
}

TEST_CASE("LIFE-2: a group that ends at once still looks at what each worker left, then kills it") {
    GroupStory story(3);
    CHECK(story.end_all({0, 1}, exited(0)).empty());
    const auto actions = story.end(2, exited(0));
    REQUIRE(actions.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::holds_alternative<CleanUpAfter>(actions[i]));
    CHECK(std::holds_alternative<KillTrees>(actions[3]));
}

TEST_CASE("LIFE-2: what was looked at already is not looked at again in the end") {
    GroupStory story(2);
    (void)story.end(0, exited(0));
    CHECK(one<CleanUpAfter>(story.wait(1s)).local_rank == 0);
    CHECK(one<CleanUpAfter>(story.end(1, exited(0))).local_rank == 1);
}

TEST_CASE("EXIT-1: the first bad exit is the cause, with its own code") {
    for (const int code : {1, 2, 3, 42, 255}) {
        GroupStory story(3);
        const auto actions = story.end(1, exited(code));
        const auto cause = one<GroupFailed>(actions).cause;
        CHECK(cause.kind == CauseKind::worker_failed);
        CHECK(cause.exit_code == code);
        CHECK(cause.failure.rank == 1);
        CHECK(cause.failure.pid == 101);
        CHECK_FALSE(cause.failure.signalled_by_ddrun);
        CHECK(has<TellWorkersAborted>(actions));
        CHECK_FALSE(has<SignalWorkers>(actions));  // the coordinator decides first
    }
}

TEST_CASE("EXIT-1: exit 0 of one worker does not hide the later failure of another") {
    GroupStory story(2);
    (void)story.end(0, exited(0));
    const auto actions = story.end(1, exited(5));
    CHECK(one<GroupFailed>(actions).cause.exit_code == 5);
    CHECK(has<KillTrees>(actions));
    CHECK_FALSE(has<GroupSucceeded>(story.feed(TreesGone{})));
}

TEST_CASE("a death by signal is 128 + s, and exit 15 is not SIGTERM") {
    GroupStory segv(2);
    CHECK(one<GroupFailed>(segv.end(0, killed_by(11))).cause.exit_code == 139);
    GroupStory fifteen(2);
    CHECK(one<GroupFailed>(fifteen.end(0, exited(15))).cause.exit_code == 15);
}

TEST_CASE("the age of a failure counts from the reap, not from the report") {
    GroupStory story(2);
    const auto actions = story.feed(WorkerExited{0, exited(1), 30ms});
    CHECK(one<GroupFailed>(actions).cause.failure.age == 30ms);
    CHECK(story.worker(0).ended_at == story.now() - 30ms);
}

TEST_CASE("EXIT-5: a group fails once; later bad exits are consequences") {
    GroupStory story(4);
    CHECK(has<GroupFailed>(story.end(2, exited(3))));
    CHECK_FALSE(has<GroupFailed>(story.end(0, exited(1))));
    CHECK_FALSE(has<GroupFailed>(story.end(1, killed_by(11))));
    CHECK(story.worker(0).signal_sent == 0);
}

TEST_CASE("LIFE-2: what a finished worker left is ended and named in one warning") {
    GroupStory story(3);
    (void)story.end(2, exited(0));
    CHECK(one<CleanUpAfter>(story.wait(100ms)).local_rank == 2);
    const auto named = story.feed(DescendantsFound{2, {{4711, "sleep 999"}, {4712, "sleep 998"}}});
    CHECK(one<Note>(named).words ==
          "rank 2 left 2 processes, ended by ddrun: 4711 sleep 999, 4712 sleep 998");
    CHECK(one<Note>(named).warning);
    CHECK(story.feed(DescendantsFound{2, {{4713, "sleep"}}}).empty());
}

TEST_CASE("LIFE-2: helpers of a failed or stopped worker are no news") {
    GroupStory failed(1);
    (void)failed.end(0, exited(1));
    CHECK(failed.feed(DescendantsFound{0, {{4711, "sleep 999"}}}).empty());
    GroupStory stopped(1);
    (void)stopped.feed(StopGroup{});
    (void)stopped.end(0, exited(0));
    CHECK(stopped.feed(DescendantsFound{0, {{4711, "sleep 999"}}}).empty());
}

TEST_CASE("a long list of leftovers stays one short line") {
    GroupStory story(2);
    (void)story.end(0, exited(0));
    std::vector<std::pair<int, std::string>> many(126, {7, "loader"});
    const auto words = one<Note>(story.feed(DescendantsFound{0, many})).words;
    CHECK(words.find("left 126 processes") != std::string::npos);
    CHECK(words.size() < 150);
}

TEST_CASE("SLURM-6: a death by TERM that ddrun did not send waits for ddrun's own TERM") {
    GroupStory story(2);
    CHECK(story.end_all({0, 1}, killed_by(15)).empty());
    story.sleep(100ms);
    const auto actions = story.feed(StopGroup{15});
    CHECK_FALSE(has<GroupFailed>(actions));
    CHECK_FALSE(has<SignalWorkers>(actions));  // they are dead
    CHECK(has<KillTrees>(actions));
}

TEST_CASE("a death by TERM, INT or HUP that nobody explains is a failure after 250 ms") {
    for (const int signal : {1, 2, 15}) {
        GroupStory story(2);
        CHECK(story.end(1, killed_by(signal)).empty());
        CHECK_FALSE(has<GroupFailed>(story.wait(249ms)));
        const auto failed = story.wait(1ms);
        CHECK(one<GroupFailed>(failed).cause.exit_code == 128 + signal);
        CHECK(one<GroupFailed>(failed).cause.failure.age == 250ms);
    }
}

TEST_CASE("a shell that reports its child's TERM as exit 143 counts as a death by TERM") {
    GroupStory story(2);
    CHECK(story.end(1, exited(143)).empty());
    CHECK(one<GroupFailed>(story.wait(250ms)).cause.exit_code == 143);
}

TEST_CASE("while a foreign TERM is in doubt, other bad exits do not become the cause") {
    GroupStory story(3);
    (void)story.end(1, killed_by(15));
    CHECK(story.end(2, exited(1)).empty());
    const auto failed = story.wait(250ms);
    CHECK(one<GroupFailed>(failed).cause.failure.rank == 1);
}

TEST_CASE("a worker that blames a peer gives way to the peer's own end") {
    GroupStory story(3);
    (void)story.feed(WorkerBlamed{0, 2, "connection reset"});
    CHECK(story.end(0, exited(1)).empty());
    const auto cause = one<GroupFailed>(story.end(2, killed_by(9))).cause;
    CHECK(cause.failure.rank == 2);
    CHECK(cause.exit_code == 137);
}

TEST_CASE("a blamed peer that lives but does not answer is a hang of that peer") {
    GroupStory story(2);
    (void)story.feed(WorkerBlamed{0, 1, "no answer for 5 s"});
    (void)story.end(0, exited(1));
    const auto cause = one<GroupFailed>(story.wait(250ms)).cause;
    CHECK(cause.kind == CauseKind::hang);
    CHECK(cause.exit_code == 124);
    CHECK(cause.failure.rank == 1);
    CHECK(cause.words.find("no answer for 5 s") != std::string::npos);
}

TEST_CASE("a worker that blames a rank of another node is reported as such") {
    GroupRules rules;
    rules.first_rank = 4;
    GroupStory story(2, rules);
    (void)story.feed(WorkerBlamed{0, 1, "connection reset"});
    (void)story.end(0, exited(1));
    const auto cause = one<GroupFailed>(story.wait(250ms)).cause;
    CHECK(cause.failure.rank == 4);
    CHECK(cause.failure.blamed_rank == 1);
}

TEST_CASE("never retry: said over the socket, or by exit code 93") {
    GroupStory said(2);
    (void)said.feed(WorkerSaidNeverRetry{1, "bad data"});
    const auto cause = one<GroupFailed>(said.end(1, exited(1))).cause;
    CHECK(cause.failure.never_retry);
    CHECK(cause.exit_code == 93);
    CHECK(cause.failure.reason == "bad data");
    GroupStory plain(2);
    CHECK(one<GroupFailed>(plain.end(1, exited(93))).cause.failure.never_retry);
}

TEST_CASE("EXIT-8: a program that cannot be executed is told once, without a count") {
    GroupRules rules;
    rules.local_world_size = 2;
    WorkerGroup group(rules);
    (void)group.start(TimePoint{});
    const auto actions =
        group.step(WorkerNotStarted{0, "./x: Permission denied", 126}, TimePoint{});
    const auto cause = one<GroupFailed>(actions).cause;
    CHECK(cause.kind == CauseKind::spawn_failed);
    CHECK(cause.exit_code == 126);
    CHECK(cause.words == "./x: Permission denied");
    const auto second = group.step(WorkerNotStarted{1, "./x: Permission denied", 126}, TimePoint{});
    CHECK_FALSE(has<GroupFailed>(second));
    CHECK(has<KillTrees>(second));
    CHECK(has<GroupGone>(group.step(TreesGone{}, TimePoint{})));
}

TEST_CASE("RES-6: a refused fork says how many were started and stops those") {
    GroupRules rules;
    rules.local_world_size = 256;
    WorkerGroup group(rules);
    (void)group.start(TimePoint{});
    for (int i = 0; i < 47; ++i) (void)group.step(WorkerStarted{i, 100 + i}, TimePoint{});
    const auto actions =
        group.step(WorkerNotStarted{47, "fork: EAGAIN (RLIMIT_NPROC=50)", 71, 47}, TimePoint{});
    CHECK(one<GroupFailed>(actions).cause.words ==
          "started 47 of 256 workers: fork: EAGAIN (RLIMIT_NPROC=50)");
    for (int i = 48; i < 256; ++i) {
        (void)group.step(WorkerNotStarted{i, "fork: EAGAIN", 71}, TimePoint{});
    }
    const auto stopped = group.step(StopGroup{}, TimePoint{});
    CHECK(one<SignalWorkers>(stopped).local_ranks == numbers(0, 46));
}

TEST_CASE("SLURM-5: a worker without a handler dies of USR1, which is its own failure, explained") {
    GroupStory story(2);
    (void)story.feed(ForwardSignal{10});
    const auto cause = one<GroupFailed>(story.end(1, killed_by(10))).cause;
    CHECK(cause.exit_code == 138);
    CHECK_FALSE(cause.failure.signalled_by_ddrun);
    CHECK(cause.failure.reason == "ddrun forwarded SIGUSR1 and the worker has no handler for it");
}

TEST_CASE("LIFE-8: a rank that finished early is mentioned after 60 s and every 10 min") {
    GroupStory story(4);
    (void)story.end(2, exited(0));
    CHECK_FALSE(has<Note>(story.wait(59999ms)));
    CHECK(one<Note>(story.wait(1ms)).words == "rank 2 finished (exit 0) 60 s ago, 3 still running");
    CHECK_FALSE(has<Note>(story.wait(10min - 1ms)));
    CHECK(one<Note>(story.wait(1ms)).words ==
          "rank 2 finished (exit 0) 11 min ago, 3 still running");
}

TEST_CASE("LIFE-8: --early-exit-timeout ends the round with 124 and names the early rank") {
    GroupRules rules;
    rules.early_exit_timeout = 10s;
    GroupStory story(4, rules);
    (void)story.end(2, exited(0));
    const auto cause = one<GroupFailed>(story.wait(10s)).cause;
    CHECK(cause.kind == CauseKind::early_exit);
    CHECK(cause.exit_code == 124);
    CHECK(cause.failure.rank == 2);
    CHECK(one<SignalWorkers>(story.feed(StopGroup{})).local_ranks == std::vector<int>{0, 1, 3});
}

TEST_CASE("events about workers that do not exist or have ended are ignored") {
    GroupStory story(2);
    (void)story.end(0, exited(0));
    for (const int local_rank : {-1, 0, 2, 4096}) {
        CHECK(story.feed(WorkerExited{local_rank, exited(1), {}}).empty());
        CHECK(story.feed(WorkerStarted{local_rank, 5}).empty());
        CHECK(story.feed(WorkerNotStarted{local_rank, "x", 127}).empty());
        CHECK(story.feed(WorkerActive{local_rank, 5, false}).empty());
        CHECK(story.feed(WorkerStopped{local_rank, true}).empty());
        CHECK(story.feed(WorkerBlamed{local_rank, 1, ""}).empty());
        CHECK(story.feed(WorkerSaidNeverRetry{local_rank, ""}).empty());
        CHECK(story.feed(HangEvidence{local_rank, ""}).empty());
    }
    CHECK(story.worker(0).pid == 100);
}

TEST_CASE("a group that is gone answers nothing") {
    GroupStory story(1);
    (void)story.end(0, exited(0));
    (void)story.feed(TreesGone{});
    for (const GroupEvent& event :
         {GroupEvent(StopGroup{}), GroupEvent(KillGroup{}), GroupEvent(TreesGone{}),
          GroupEvent(ForwardSignal{10}), GroupEvent(Suspend{}), GroupEvent(Resume{})}) {
        CHECK(story.feed(event).empty());
    }
    CHECK_FALSE(story.group().next_deadline());
    CHECK(story.group().describe() == "gone, 0 living and 1 ended of 1");
}

TEST_CASE("only new steps are reported") {
    GroupStory story(2);
    CHECK(one<StepReached>(story.feed(WorkerActive{0, 7, false})).step == 7);
    CHECK(story.feed(WorkerActive{0, 7, false}).empty());
    CHECK(story.feed(WorkerActive{0, -1, false}).empty());
    CHECK(story.feed(WorkerActive{0, 9, true}).empty());  // output carries no step
}
