#include "tests/support/catch.hpp"
#include "tests/unit/launcher/agent_story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::CauseKind;
using rendezvous::FailureReport;
using rendezvous::Leave;
using rendezvous::RoundGone;

namespace {

constexpr int hup = 1, interrupt = 2, quit = 3, user1 = 10, user2 = 12, terminate = 15, cont = 18,
              terminal_stop = 20, window = 28;

}  // namespace

TEST_CASE("EXIT-6: each stop signal is passed on as it is and leaves with 128 + s") {
    for (const int number : {terminate, interrupt, hup, quit}) {
        AgentStory story(2);
        story.running();
        const auto actions = story.signal(number);
        const auto cause = said<Leave>(actions).at(0).cause;
        CHECK(cause.kind == CauseKind::told_to_stop);
        CHECK(cause.exit_code == 128 + number);
        CHECK(cause.words == "stopped by " + signal_name(number) + " from pid 4242 uid 1000");
        CHECK(asked<SignalWorkers>(actions).at(0).signal == number);
    }
}

TEST_CASE("EXIT-6: told to stop stays told to stop when every worker answers with exit 0") {
    AgentStory story(2);
    story.running();
    const auto cause = said<Leave>(story.signal(terminate)).at(0).cause;
    (void)story.hear(stop_round(1, cause));
    for (const int worker : {0, 1}) (void)story.end(worker, exited(0));
    const auto gone = story.group(TreesGone{});
    CHECK(said<RoundGone>(gone).size() == 1);
    CHECK(said<rendezvous::NodeDone>(gone).empty());
    CHECK(one<Finish>(story.hear(verdict(143, cause))).exit_code == 143);
}

TEST_CASE("EXIT-6: no restart after a stop request, even if a grant has crossed it") {
    AgentStory story(2);
    (void)story.join();
    const auto cause = said<Leave>(story.signal(terminate)).at(0).cause;
    CHECK(story.begin_round(1).empty());
    CHECK(said<RoundGone>(story.hear(stop_round(1, cause))).size() == 1);
    CHECK(one<Finish>(story.hear(verdict(143, cause))).exit_code == 143);
}

TEST_CASE("RDZV-6: a stop before any round ends at once, with or without a coordinator") {
    AgentStory created(1);
    CHECK(one<Finish>(created.signal(interrupt)).exit_code == 130);
    AgentStory joining(1);
    (void)joining.join();
    CHECK(said<Leave>(joining.signal(interrupt)).size() == 1);
    CHECK(one<Finish>(joining.wait(500ms)).exit_code == 130);
}

TEST_CASE("a stop request during the back-off ends the job at once") {
    AgentStory story(1);
    story.running();
    const auto report = said<FailureReport>(story.end(0, exited(1))).at(0);
    (void)story.hear(stop_round(1, report.cause, true));
    (void)story.group(TreesGone{});
    const auto left = said<Leave>(story.signal(terminate));
    REQUIRE(left.size() == 1);
    CHECK(one<Finish>(story.hear(verdict(143, left[0].cause))).exit_code == 143);
}

TEST_CASE("a stop request while a failed round is being stopped sends no second signal") {
    AgentStory story(3);
    story.running();
    const auto report = said<FailureReport>(story.end(0, exited(1))).at(0);
    (void)story.hear(stop_round(1, report.cause, true));
    const auto actions = story.signal(terminate);
    CHECK(said<Leave>(actions).size() == 1);
    CHECK(asked<SignalWorkers>(actions).empty());
}

TEST_CASE("LIFE-4: Ctrl-C twice kills at once; five times within 100 ms is once") {
    AgentStory story(2);
    story.running();
    CHECK(asked<SignalWorkers>(story.signal(interrupt)).size() == 1);
    for (int i = 0; i < 4; ++i) {
        (void)story.wait(20ms);
        CHECK(story.signal(interrupt).empty());
    }
    (void)story.wait(920ms);
    const auto killed = story.signal(interrupt);
    CHECK(asked<KillTrees>(killed).size() == 1);
    CHECK(asked<Note>(killed).at(0).warning);
    CHECK(story.signal(interrupt).size() == 1);  // said again, done already
}

TEST_CASE("LIFE-4: INT, then TERM is a second request, also within 100 ms") {
    AgentStory story(2);
    story.running();
    (void)story.signal(interrupt);
    CHECK(asked<KillTrees>(story.signal(terminate)).size() == 1);
    CHECK(story.agent().describe().find("told to stop by SIGINT") != std::string::npos);
}

TEST_CASE("LIFE-4: a second request with nothing left ends without waiting for anybody") {
    AgentStory story(1);
    (void)story.join();
    (void)story.signal(interrupt);
    CHECK(one<Finish>(story.signal(terminate)).exit_code == 130);
}

TEST_CASE("a stop from the terminal says how to make it quick") {
    AgentStory story(2);
    story.running();
    const auto actions = story.feed(SignalArrived{interrupt, 0, 0, true});
    CHECK(asked<Note>(actions).at(0).words ==
          "SIGINT from the terminal: stopping, 30 s grace; Ctrl-C again kills at once");
}

TEST_CASE("a signal from outside the PID namespace has no sender to name") {
    AgentStory story(2);
    story.running();
    CHECK(said<Leave>(story.signal(terminate, 0, 0)).at(0).cause.words == "stopped by SIGTERM");
}

TEST_CASE("LIFE-7: an inherited ignored HUP stays ignored") {
    AgentRules rules;
    rules.ignored_signals = {hup};
    AgentStory story(2, rules);
    story.running();
    CHECK(story.signal(hup).empty());
    CHECK(asked<SignalWorkers>(story.signal(terminate)).size() == 1);
}

TEST_CASE("SLURM-5: USR1, USR2 and WINCH are passed on once each while a round runs") {
    for (const int number : {user1, user2, window}) {
        AgentStory story(2);
        (void)story.join();
        CHECK(story.signal(number).empty());  // joining: ignored, not fatal
        (void)story.begin_round(1);
        for (int times = 0; times < 3; ++times) {
            const auto actions = story.signal(number);
            REQUIRE(actions.size() == 1);
            CHECK(asked<SignalWorkers>(actions).at(0).local_ranks == std::vector<int>{0, 1});
        }
    }
}

TEST_CASE("SLURM-5: USR1 during the back-off is ignored") {
    AgentStory story(1);
    story.running();
    const auto report = said<FailureReport>(story.end(0, exited(1))).at(0);
    (void)story.hear(stop_round(1, report.cause, true));
    (void)story.group(TreesGone{});
    CHECK(story.signal(user1).empty());
}

TEST_CASE("--signals-to-handle can make any signal a stop signal") {
    AgentRules rules;
    rules.stop_signals = {user1};
    AgentStory story(1, rules);
    story.running();
    CHECK(said<Leave>(story.signal(user1)).at(0).cause.exit_code == 138);
    CHECK(asked<SignalWorkers>(story.signal(user2)).at(0).signal == user2);
}

TEST_CASE("Ctrl-Z stops the workers first, then ddrun; CONT lets the workers go on") {
    AgentStory story(2);
    story.running();
    const auto actions = story.signal(terminal_stop);
    REQUIRE(actions.size() == 2);
    CHECK(asked<SuspendWorkers>(actions).at(0).stop);
    CHECK(std::holds_alternative<SuspendSelf>(actions[1]));
    CHECK_FALSE(asked<SuspendWorkers>(story.signal(cont)).at(0).stop);
}

TEST_CASE("Ctrl-Z between rounds stops ddrun alone; a stray CONT is harmless in every phase") {
    AgentStory story(2);
    CHECK(story.signal(cont).empty());
    (void)story.join();
    CHECK(has<SuspendSelf>(story.signal(terminal_stop)));
    CHECK(story.signal(cont).empty());
    (void)story.begin_round(1);
    CHECK(story.signal(cont).empty());
    (void)story.signal(terminate);
    CHECK(story.signal(cont).empty());
}

TEST_CASE("SLURM-6: CONT and TERM to ddrun and all its workers is a stop, not a failure") {
    AgentStory story(2);
    story.running();
    CHECK(story.signal(cont).empty());
    CHECK(story.end(0, killed_by(terminate)).empty());  // seen before ddrun's own
    CHECK(story.end(1, killed_by(terminate)).empty());
    const auto actions = story.signal(terminate);
    CHECK(said<FailureReport>(actions).empty());
    CHECK(said<Leave>(actions).size() == 1);
    CHECK(asked<SignalWorkers>(actions).empty());
    CHECK(asked<KillTrees>(actions).size() == 1);
}
