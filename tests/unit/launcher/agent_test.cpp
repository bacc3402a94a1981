#include "launcher/core/agent.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/launcher/agent_story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::Cause;
using rendezvous::CauseKind;
using rendezvous::FailureReport;
using rendezvous::Join;
using rendezvous::Leave;
using rendezvous::NodeDone;
using rendezvous::RoundGone;
using rendezvous::StepCommitted;
using rendezvous::Verdict;

TEST_CASE("a job without trouble: join, one round, done, verdict") {
    AgentStory story(2);
    CHECK(said<Join>(story.join()).size() == 1);
    const auto begun = story.begin_round(1);
    REQUIRE(begun.size() == 2);
    CHECK(std::get<BeginRound>(begun[0]).grant.round == 1);
    CHECK(asked<StartWorkers>(begun).size() == 1);
    (void)story.end(0, exited(0));
    CHECK(asked<KillTrees>(story.end(1, exited(0))).size() == 1);
    const auto done = story.group(TreesGone{});
    REQUIRE(done.size() == 2);
    CHECK(std::get<EndRound>(done[0]).round == 1);
    CHECK(said<NodeDone>(done).size() == 1);
    const auto last = story.hear(Verdict{});
    CHECK(one<Finish>(last).exit_code == 0);
    CHECK_FALSE(one<Finish>(last).cause);
    CHECK(one<Finish>(last).workers.size() == 2);
    CHECK(story.join().empty());
}

TEST_CASE("the ranks of a round begin where the grant says") {
    AgentStory story(2);
    (void)story.join();
    (void)story.begin_round(1, 6);
    CHECK(story.agent().group()->workers()[1].rank == 7);
}

TEST_CASE("EXIT-1: a failure is reported with its node, stopped, and ends in the verdict") {
    AgentStory story(3);
    story.running();
    const auto reports = said<FailureReport>(story.end(1, exited(3)));
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].round == 1);
    CHECK(reports[0].cause.node_name == "n0");
    CHECK(reports[0].cause.failure.rank == 1);
    const auto stopped = story.hear(stop_round(1, reports[0].cause));
    REQUIRE(asked<SignalWorkers>(stopped).size() == 1);
    CHECK(asked<SignalWorkers>(stopped)[0].local_ranks == std::vector<int>{0, 2});
    const auto gone = story.everything_ends();
    CHECK(said<RoundGone>(gone).size() == 1);
    CHECK(said<NodeDone>(gone).empty());
    const auto last = one<Finish>(story.hear(verdict(3, reports[0].cause)));
    CHECK(last.exit_code == 3);
    CHECK(last.cause->failure.rank == 1);
}

TEST_CASE(
    "RST-1: a restart begins a new round after the old one is gone, and says which attempt "
    "failed") {
    AgentStory story(2);
    story.running();
    (void)story.wait(200ms);
    const auto report = said<FailureReport>(story.end(0, exited(1))).at(0);
    auto stop = stop_round(1, report.cause, true);
    stop.restart_delay = 2s;
    const auto stopped = story.hear(stop);
    CHECK(asked<Note>(stopped).at(0).words ==
          "attempt 1/10 failed after 0.2 s: rank 0: exit code 1; restart 1 of 10 in 2 s");
    CHECK(said<RoundGone>(story.everything_ends()).size() == 1);
    const auto begun = story.begin_round(2);
    CHECK(one<BeginRound>(begun).grant.restart_count == 1);
    CHECK(story.agent().group()->workers()[0].pid == 200);
}

TEST_CASE("RST-1: the last attempt says why there is no other one") {
    AgentStory story(2);
    story.running();
    const auto report = said<FailureReport>(story.end(0, exited(7))).at(0);
    auto stop = stop_round(1, report.cause);
    CHECK(asked<Note>(story.hear(stop)).at(0).words ==
          "attempt 1 failed after 0 ms: rank 0: exit code 7; no restart is left");
    AgentStory other(2);
    other.running();
    (void)other.end(0, exited(7));
    stop.why_no_restart = "exit code 7 is listed in --no-restart-on";
    CHECK(asked<Note>(other.hear(stop)).at(0).words ==
          "attempt 1 failed after 0 ms: rank 0: exit code 7; no restart: exit code 7 is listed in "
          "--no-restart-on");
}

TEST_CASE("without --max-restarts nobody counts attempts") {
    AgentStory story(1);
    story.running();
    const auto report = said<FailureReport>(story.end(0, exited(1))).at(0);
    auto stop = stop_round(1, report.cause);
    stop.max_restarts = 0;
    CHECK(asked<Note>(story.hear(stop)).empty());
}

TEST_CASE("RST-4: another node's failure stops this node's workers, SDK workers at once") {
    AgentStory story(2);
    story.running();
    Cause cause;
    cause.failure.rank = 5;
    cause.words = "rank 5: exit code 4";
    const auto stopped = story.hear(stop_round(1, cause));
    CHECK(asked<TellWorkersAborted>(stopped).at(0).rank == 5);
    CHECK(asked<SignalWorkers>(stopped).at(0).signal == 15);
    CHECK(said<RoundGone>(story.everything_ends()).size() == 1);
}

TEST_CASE("another node's stop signal reaches this node's workers as that signal") {
    AgentStory story(2);
    story.running();
    Cause cause;
    cause.kind = CauseKind::told_to_stop;
    cause.exit_code = 130;
    const auto stopped = story.hear(stop_round(1, cause));
    CHECK(asked<SignalWorkers>(stopped).at(0).signal == 2);
    CHECK(asked<TellWorkersAborted>(stopped).empty());
}

TEST_CASE("a node that is done takes part in stopping the round, and in a later one") {
    AgentStory story(1);
    story.running();
    (void)story.end(0, exited(0));
    CHECK(said<NodeDone>(story.group(TreesGone{})).size() == 1);
    CHECK(said<RoundGone>(story.hear(stop_round(1, Cause{}, true))).size() == 1);
    CHECK(said<RoundGone>(story.hear(stop_round(1, Cause{}, true))).empty());
    CHECK(asked<StartWorkers>(story.begin_round(2)).size() == 1);
}

TEST_CASE("messages about another round are ignored") {
    AgentStory story(2);
    story.running();
    CHECK(story.hear(stop_round(7, Cause{})).empty());
    CHECK(story.begin_round(1).empty());
    CHECK(story.begin_round(2).empty());  // the old one is not gone
}

TEST_CASE("a round is called healthy once") {
    AgentStory story(2);
    story.running();
    CHECK(said<StepCommitted>(story.group(WorkerActive{0, 1, false})).size() == 1);
    CHECK(said<StepCommitted>(story.group(WorkerActive{1, 1, false})).empty());
    CHECK(said<StepCommitted>(story.group(WorkerActive{0, 2, false})).empty());
}

TEST_CASE("EXIT-8: an executable that is refused is reported as such") {
    AgentStory story(2);
    (void)story.join();
    (void)story.hear(rendezvous::RoundGranted{});
    const auto report = said<FailureReport>(
        story.group(WorkerNotStarted{0, "exec 'nosuch': not found in PATH", 127}));
    REQUIRE(report.size() == 1);
    CHECK(report[0].cause.kind == CauseKind::spawn_failed);
    CHECK(report[0].cause.exit_code == 127);
}

TEST_CASE("an unfit node says so, and ends even if nobody answers") {
    AgentStory story(1);
    story.running();
    (void)story.signal(15);
    (void)story.signal(2);
    const auto report = said<FailureReport>(story.group(ProcessStuck{7, 0, "cat", "nfs_wait"}));
    REQUIRE(report.size() == 1);
    CHECK(report[0].cause.kind == CauseKind::node_unfit);
    CHECK_FALSE(has<Finish>(story.wait(499ms)));
    const auto last = story.wait(1ms);
    CHECK(one<Finish>(last).exit_code == 71);
    CHECK(one<EndRound>(last).round == 1);
}

TEST_CASE("an unfit node ends with the verdict where there is one") {
    AgentStory story(1);
    story.running();
    (void)story.end(0, exited(1));
    const auto report =
        said<FailureReport>(story.group(ProcessStuck{7, 0, "cat", "nfs_wait"})).at(0);
    CHECK(one<Finish>(story.hear(verdict(71, report.cause))).exit_code == 71);
}

TEST_CASE("a process that makes the node unfit is named, whatever the job ends with") {
    AgentStory story(1);
    story.running();
    (void)story.end(0, exited(4));
    (void)story.group(ProcessStuck{7, 0, "cat", "waiting in nfs_wait"});
    const auto last = one<Finish>(story.hear(verdict(4, Cause{})));
    CHECK(last.still_there.find("process 7 (cat) of rank 0") == 0);
}

TEST_CASE("LIFE-1: a lost keeper ends the job with 71 in every phase, naming it") {
    auto lose = [](AgentStory& story) {
        const auto actions = story.feed(KeeperLost{"the keeper (pid 9) was killed by SIGKILL"});
        const auto last = one<Finish>(actions);
        CHECK(last.exit_code == 71);
        CHECK(last.cause->kind == CauseKind::keeper_lost);
        CHECK(last.cause->words == "the keeper (pid 9) was killed by SIGKILL");
        for (const auto& worker : last.workers) CHECK_FALSE(worker.lives());
        CHECK(all_of<EndRound>(actions).size() <= 1);
        CHECK_FALSE(story.agent().next_deadline());
        CHECK(story.signal(15).empty());
    };
    AgentStory created(2);
    lose(created);
    AgentStory joining(2);
    (void)joining.join();
    lose(joining);
    AgentStory in_round(2);
    in_round.running();
    lose(in_round);
    AgentStory stopping(2);
    stopping.running();
    (void)stopping.signal(15);
    lose(stopping);
    AgentStory backing_off(1);
    backing_off.running();
    const auto report = said<FailureReport>(backing_off.end(0, exited(1))).at(0);
    (void)backing_off.hear(stop_round(1, report.cause, true));
    (void)backing_off.group(TreesGone{});
    lose(backing_off);
}

TEST_CASE(
    "a shell that cannot go on before any worker started kills the round and ends with its code") {
    AgentStory story(2);
    (void)story.join();
    (void)story.hear(rendezvous::RoundGranted{});
    const auto actions = story.feed(ShellFailed{71, "log directory: No space left on device"});
    CHECK(said<FailureReport>(actions).at(0).cause.exit_code == 71);
    CHECK(asked<KillTrees>(actions).size() == 1);
    CHECK(said<RoundGone>(story.group(TreesGone{})).size() == 1);
}

TEST_CASE("a shell that fails while workers run stops them with their grace") {
    AgentStory story(2);
    story.running();
    const auto actions = story.feed(ShellFailed{71, "log file: I/O error"});
    CHECK(asked<SignalWorkers>(actions).at(0).signal == 15);
    CHECK(asked<KillTrees>(actions).empty());
}

TEST_CASE("a shell that fails between rounds waits for the verdict, but not for ever") {
    AgentStory story(1);
    (void)story.join();
    CHECK(said<FailureReport>(story.feed(ShellFailed{71, "no socket"})).size() == 1);
    CHECK(one<Finish>(story.wait(500ms)).exit_code == 71);
    AgentStory early(1);
    CHECK(one<Finish>(early.feed(ShellFailed{71, "no socket"})).exit_code == 71);
}

TEST_CASE("a grant that crosses the report of a failed shell starts nothing") {
    AgentStory story(1);
    (void)story.join();
    (void)story.feed(ShellFailed{71, "no socket"});
    CHECK(story.begin_round(1).empty());
    CHECK(one<Finish>(story.wait(500ms)).exit_code == 71);
}

TEST_CASE("a verdict that comes while workers live is kept until they are gone") {
    AgentStory story(1);
    story.running();
    Cause cause;
    cause.exit_code = 9;
    const auto stopped = story.hear(verdict(9, cause));
    CHECK_FALSE(has<Finish>(stopped));
    CHECK(asked<SignalWorkers>(stopped).size() == 1);
    const auto last = story.everything_ends();
    CHECK(one<Finish>(last).exit_code == 9);
    CHECK(one<EndRound>(last).round == 1);
}

TEST_CASE("the agent's state fits in one line") {
    AgentStory story(2);
    CHECK(story.agent().describe() == "created, round 0");
    story.running();
    (void)story.signal(15);
    CHECK(story.agent().describe() ==
          "in round, round 1, told to stop by SIGTERM; group stopping, 2 living and 0 ended of 2");
}
