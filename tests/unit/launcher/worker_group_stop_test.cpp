#include "launcher/core/worker_group.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/launcher/story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::CauseKind;

namespace {

GroupRules rules_with_grace(Duration grace) {
    GroupRules rules;
    rules.shutdown_timeout = grace;
    return rules;
}

}  // namespace

TEST_CASE("LIFE-6: all living workers are signalled in one action, with one deadline") {
    GroupStory story(16, rules_with_grace(3s));
    (void)story.end(3, exited(7));
    const auto actions = story.feed(StopGroup{});
    const auto signalled = one<SignalWorkers>(actions);
    CHECK(signalled.signal == 15);
    CHECK(signalled.local_ranks.size() == 15);
    CHECK(std::count(signalled.local_ranks.begin(), signalled.local_ranks.end(), 3) == 0);
    CHECK(one<TellWorkersToStop>(actions).grace == 3s);
    CHECK(story.group().next_deadline() == story.now() + 3s);
    CHECK_FALSE(has<KillTrees>(story.wait(2999ms)));
    const auto late = story.wait(1ms);
    CHECK(has<KillTrees>(late));
    CHECK(one<Note>(late).words == "killing ranks 0-2, 4-15 after 3 s grace");
    CHECK(story.worker(0).killed_after_grace);
    CHECK_FALSE(story.worker(3).killed_after_grace);
}

TEST_CASE("LIFE-5: workers that end early end the wait at once") {
    GroupStory story(2, rules_with_grace(60s));
    (void)story.feed(StopGroup{});
    CHECK(story.end(0, exited(0)).empty());
    CHECK(has<KillTrees>(story.end(1, exited(0))));
    const auto last = story.feed(TreesGone{});
    CHECK(has<GroupGone>(last));
    CHECK_FALSE(has<GroupSucceeded>(last));  // EXIT-6: asked to stop is never success
}

TEST_CASE("LIFE-2: descendants are ended before a failed group is gone") {
    GroupStory story(1);
    const auto actions = story.end(0, exited(1));
    CHECK(has<GroupFailed>(actions));
    CHECK(has<KillTrees>(actions));
    CHECK_FALSE(has<GroupGone>(story.feed(StopGroup{})));
    CHECK(has<GroupGone>(story.feed(TreesGone{})));
}

TEST_CASE("LIFE-4: a kill request skips what is left of the grace") {
    GroupStory story(2, rules_with_grace(30s));
    (void)story.feed(StopGroup{2});
    CHECK(has<KillTrees>(story.feed(KillGroup{})));
    CHECK(story.feed(KillGroup{}).empty());
    CHECK_FALSE(story.worker(0).killed_after_grace);
    CHECK(story.worker(0).signal_sent == 9);
}

TEST_CASE("a stop signal is passed on as it is, and only to workers that live") {
    GroupStory story(3);
    (void)story.end(1, exited(0));
    const auto signalled = one<SignalWorkers>(story.feed(StopGroup{2}));
    CHECK(signalled.signal == 2);
    CHECK(signalled.local_ranks == std::vector<int>{0, 2});
}

TEST_CASE("a second stop request during the grace sends no second signal") {
    GroupStory story(2);
    (void)story.feed(StopGroup{2});
    const auto deadline = story.group().next_deadline();
    (void)story.wait(1s);
    CHECK(story.feed(StopGroup{15}).empty());
    CHECK(story.group().next_deadline() == deadline);
}

TEST_CASE("a stop while workers are still being started reaches those too") {
    GroupRules rules;
    rules.local_world_size = 3;
    WorkerGroup group(rules);
    (void)group.start(TimePoint{});
    (void)group.step(WorkerStarted{0, 100}, TimePoint{});
    const auto actions = group.step(StopGroup{}, TimePoint{});
    CHECK(one<SignalWorkers>(actions).local_ranks == std::vector<int>{0, 1, 2});
}

TEST_CASE("a stopped worker is continued after its stop signal, so that it can act on it") {
    GroupStory story(2);
    (void)story.feed(WorkerStopped{1, true});
    const auto signals = all_of<SignalWorkers>(story.feed(StopGroup{}));
    REQUIRE(signals.size() == 2);
    CHECK(signals[0].signal == 15);
    CHECK(signals[1].signal == 18);
    CHECK(signals[1].local_ranks == std::vector<int>{1});
}

TEST_CASE("a worker that was dead before our signal is not counted as stopped by us") {
    GroupStory story(2);
    (void)story.end(0, exited(3));
    (void)story.feed(StopGroup{});
    story.sleep(1ms);
    (void)story.feed(WorkerExited{1, exited(1), 20ms});
    CHECK(story.worker(1).signal_sent == 0);
}

TEST_CASE(
    "a worker that obeyed the first signal was not killed, even if SIGKILL followed at once") {
    GroupStory story(2, rules_with_grace(5s));
    (void)story.feed(StopGroup{});
    (void)story.wait(5s);
    (void)story.end(0, exited(0));
    (void)story.end(1, killed_by(9));
    CHECK(story.worker(0).signal_sent == 15);
    CHECK_FALSE(story.worker(0).killed_after_grace);
    CHECK(story.worker(1).signal_sent == 9);
    CHECK(story.worker(1).killed_after_grace);
}

TEST_CASE("a process that SIGKILL does not end makes the node unfit, naming it") {
    GroupStory story(2);
    (void)story.end(1, exited(1));
    (void)story.feed(KillGroup{});
    const auto actions =
        story.feed(ProcessStuck{4711, 0, "python train.py", "waiting in nfs_wait_bit_killable"});
    const auto cause = one<NodeUnfit>(actions).cause;
    CHECK(cause.kind == CauseKind::node_unfit);
    CHECK(cause.exit_code == 71);
    CHECK(cause.words ==
          "process 4711 (python train.py) of rank 0 is still there 10 s after SIGKILL, waiting in "
          "nfs_wait_bit_killable: this node cannot be used until it is gone");
    CHECK_FALSE(story.group().next_deadline());
    CHECK(has<GroupGone>(story.feed(TreesGone{})));  // it went in the end
}

TEST_CASE("a keeper that answers nothing at all makes the node unfit, too") {
    GroupStory story(1);
    (void)story.feed(KillGroup{});
    CHECK(has<NodeUnfit>(story.wait(15s)));
}

TEST_CASE("an answer of the keeper that ddrun had no time to read does not make the node unfit") {
    GroupStory story(1);
    (void)story.feed(KillGroup{});
    story.sleep(1h);  // ddrun itself was stopped
    CHECK(story.wait(1s).empty());
    CHECK(has<GroupGone>(story.feed(TreesGone{})));
}

TEST_CASE("a group that was never started is gone when it is told to stop") {
    for (const GroupEvent& event : {GroupEvent(StopGroup{}), GroupEvent(KillGroup{})}) {
        WorkerGroup group(GroupRules{});
        CHECK(group.describe() == "created, 0 living and 0 ended of 1");
        CHECK(group.advance_to(TimePoint::max()).empty());
        CHECK(has<GroupGone>(group.step(event, TimePoint{})));
    }
}

TEST_CASE("SLURM-5: a forwarded signal reaches living workers and changes nothing") {
    GroupStory story(3);
    (void)story.end(0, exited(0));
    const auto actions = story.feed(ForwardSignal{10});
    REQUIRE(actions.size() == 1);
    CHECK(one<SignalWorkers>(actions).local_ranks == std::vector<int>{1, 2});
    CHECK_FALSE(one<SignalWorkers>(actions).whole_group);  // helpers without a handler would die
    CHECK(story.worker(1).signal_sent == 0);
    CHECK(one<SignalWorkers>(story.feed(StopGroup{})).whole_group);
    CHECK(one<SignalWorkers>(story.feed(ForwardSignal{12})).signal == 12);  // during a stop, too
    (void)story.feed(KillGroup{});
    CHECK(story.feed(ForwardSignal{10}).empty());
}

TEST_CASE("Ctrl-Z stops the trees and every clock; fg moves the deadlines by the time asleep") {
    GroupRules rules;
    rules.early_exit_timeout = 10s;
    GroupStory story(2, rules);
    (void)story.end(0, exited(0));
    (void)story.wait(4s);
    CHECK(one<SuspendWorkers>(story.feed(Suspend{})).stop);
    CHECK_FALSE(story.group().next_deadline());
    story.sleep(1h);
    CHECK_FALSE(one<SuspendWorkers>(story.feed(Resume{})).stop);
    CHECK_FALSE(has<GroupFailed>(story.wait(5999ms)));
    CHECK(has<GroupFailed>(story.wait(1ms)));
}

TEST_CASE("a resume without a suspend is harmless") {
    GroupStory story(2);
    CHECK(story.feed(Resume{}).empty());
}

TEST_CASE("a stop request wakes suspended workers, after their signal") {
    GroupStory story(2, rules_with_grace(5s));
    (void)story.feed(Suspend{});
    story.sleep(1min);
    const auto actions = story.feed(StopGroup{});
    REQUIRE(actions.size() == 3);
    CHECK(std::holds_alternative<SignalWorkers>(actions[0]));
    CHECK_FALSE(std::get<SuspendWorkers>(actions[2]).stop);
    CHECK(story.group().next_deadline() == story.now() + 5s);
}

TEST_CASE("a kill request while suspended kills") {
    GroupStory story(2);
    (void)story.feed(Suspend{});
    CHECK(has<KillTrees>(story.feed(KillGroup{})));
    CHECK(story.group().next_deadline());
}
