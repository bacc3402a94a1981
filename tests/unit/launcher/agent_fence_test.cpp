// A node that lost contact to its job: no worker of it runs beside those of a later round.
#include "tests/support/catch.hpp"
#include "tests/unit/launcher/agent_story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using Step = FenceChanged::Step;

namespace {

rendezvous::Cause lost_cause() {
    rendezvous::Cause cause;
    cause.kind = rendezvous::CauseKind::node_lost;
    cause.exit_code = 75;
    cause.words = "node n1 was lost";
    return cause;
}

}  // namespace

TEST_CASE("RDZV-7: a fenced node freezes its workers, and thaws them when the round still stands") {
    AgentStory story(2);
    story.running();
    const auto frozen = story.feed(FenceChanged{Step::freeze, "lost contact"});
    REQUIRE(asked<SuspendWorkers>(frozen).size() == 1);
    CHECK(asked<SuspendWorkers>(frozen).front().stop);
    CHECK(asked<Note>(frozen).front().words == "lost contact");
    const auto thawed = story.feed(FenceChanged{Step::thaw, "contact is back"});
    REQUIRE(asked<SuspendWorkers>(thawed).size() == 1);
    CHECK_FALSE(asked<SuspendWorkers>(thawed).front().stop);
}

TEST_CASE("RDZV-7: a fence that ends in another round kills at once") {
    AgentStory story(1);
    story.running();
    (void)story.feed(FenceChanged{Step::freeze, ""});
    const auto killed = story.feed(FenceChanged{Step::kill, "expelled"});
    CHECK(asked<KillTrees>(killed).size() == 1);
    CHECK(asked<SignalWorkers>(killed).empty());
    (void)story.hear(verdict(75, lost_cause()));
    (void)story.end(0, killed_by(9));
    const auto finish = all_of<Finish>(story.group(TreesGone{}));
    REQUIRE(finish.size() == 1);
    CHECK(finish.front().exit_code == 75);
}

TEST_CASE("frozen time counts towards no deadline") {
    AgentRules rules;
    rules.group.hang_timeout = 10s;
    AgentStory story(1, rules);
    story.running();
    (void)story.wait(5s);
    (void)story.feed(FenceChanged{Step::freeze, ""});
    CHECK(asked<InspectWorker>(story.wait(60s)).empty());
    (void)story.feed(FenceChanged{Step::thaw, ""});
    CHECK(asked<InspectWorker>(story.wait(4s)).empty());
}

TEST_CASE("a stop of this very round thaws, so that workers have their grace") {
    AgentStory story(1);
    story.running();
    (void)story.feed(FenceChanged{Step::freeze, ""});
    const auto stopped = story.hear(stop_round(1, lost_cause()));
    REQUIRE(asked<SuspendWorkers>(stopped).size() == 1);
    CHECK_FALSE(asked<SuspendWorkers>(stopped).front().stop);
    CHECK(asked<SignalWorkers>(stopped).size() == 1);
    CHECK(asked<KillTrees>(stopped).empty());
}

TEST_CASE(
    "frozen workers are killed where ddrun is told to stop: they cannot answer and must not") {
    AgentStory story(1);
    story.running();
    (void)story.feed(FenceChanged{Step::freeze, ""});
    const auto stopped = story.signal(15);
    CHECK(asked<KillTrees>(stopped).size() == 1);
    CHECK(asked<SuspendWorkers>(stopped).empty());
}

TEST_CASE("whoever was told to stop does not wait frozen for a server") {
    AgentStory story(1);
    story.running();
    (void)story.signal(15);
    const auto fenced = story.feed(FenceChanged{Step::freeze, ""});
    CHECK(asked<KillTrees>(fenced).size() == 1);
    CHECK(asked<SuspendWorkers>(fenced).empty());
}

TEST_CASE("a node that is done although its round is being stopped says that nothing is left") {
    AgentStory story(1);
    story.running();
    (void)story.end(0, ExitStatus{});
    (void)story.hear(stop_round(1, lost_cause()));
    const auto last = story.group(TreesGone{});
    REQUIRE(all_of<Say>(last).size() == 2);
    CHECK(std::holds_alternative<rendezvous::RoundGone>(all_of<Say>(last).back().message));
}

TEST_CASE("the workers of the next round have their grace, though the last one ended frozen") {
    AgentStory story(1);
    story.running();
    (void)story.feed(FenceChanged{Step::freeze, ""});
    (void)story.feed(ShellFailed{71, "no descriptors"});
    (void)story.end(0, killed_by(9));
    (void)story.group(TreesGone{});
    (void)story.hear(stop_round(1, lost_cause(), true));
    story.running(2);
    const auto stopped = story.hear(stop_round(2, lost_cause()));
    CHECK(asked<SignalWorkers>(stopped).size() == 1);
    CHECK(asked<KillTrees>(stopped).empty());
}

TEST_CASE("fg does not thaw what is fenced, and a thaw does not wake what sleeps by Ctrl-Z") {
    AgentStory story(1);
    story.running();
    (void)story.feed(FenceChanged{Step::freeze, ""});
    CHECK(asked<SuspendWorkers>(story.signal(18)).empty());
    (void)story.feed(FenceChanged{Step::thaw, ""});
    (void)story.signal(20);
    (void)story.feed(FenceChanged{Step::freeze, ""});
    CHECK(asked<SuspendWorkers>(story.feed(FenceChanged{Step::thaw, ""})).empty());
    CHECK_FALSE(asked<SuspendWorkers>(story.signal(18)).front().stop);
}

TEST_CASE("a group that forms anew is no failed attempt") {
    AgentStory story(1);
    story.running();
    rendezvous::Cause cause;
    cause.kind = rendezvous::CauseKind::membership;
    cause.words = "node n2 joined";
    const auto notes = asked<Note>(story.hear(stop_round(1, cause, true)));
    REQUIRE_FALSE(notes.empty());
    CHECK(notes.front().words == "node n2 joined: the group forms anew");
    CHECK_FALSE(notes.front().warning);
}
