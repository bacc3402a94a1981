// The server's view of a job: who may join, who is back, what is said exactly once.
#include "rendezvous/protocol/exit_status.hpp"
#include "tests/unit/rendezvous/service_story.hpp"

#include <algorithm>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::rendezvous::story;
using Catch::Matchers::Contains;

namespace {

NodeRefused refusal_of(const ServiceStory& story, ConnectionId connection) {
    const auto refused = story.all<NodeRefused>(connection);
    REQUIRE(refused.size() == 1);
    CHECK(std::count(story.closed.begin(), story.closed.end(), connection) == 1);
    return refused.front();
}

Cause failure(int code) {
    Cause cause;
    cause.failure.status = {ExitStatus::Kind::exited, code, false};
    cause.words = "it failed";
    return cause;
}

ToJob set(int round, int rank, const std::string& key, const std::string& value) {
    return StoreAsked{round, rank, StoreSet{7, key, value}};
}
ToJob get(int round, int rank, const std::string& key) {
    return StoreAsked{round, rank, StoreGet{8, key, 0}};
}

}  // namespace

TEST_CASE("two nodes are welcomed, granted the round, and told one verdict") {
    ServiceStory story;
    story.running();
    for (const ConnectionId connection : {1, 2}) {
        CHECK(story.all<NodeWelcome>(connection).front().job_incarnation ==
              "11111111111111111111111111111111");
        const auto grants = story.payloads<RoundGranted>(connection);
        REQUIRE(grants.size() == 1);
        CHECK(grants.front().node_rank == static_cast<int>(connection) - 1);
        CHECK(grants.front().world_size == 2);
    }
    for (const ConnectionId connection : {1, 2}) story.tell(connection, NodeDone{1});
    for (const ConnectionId connection : {1, 2}) {
        REQUIRE(story.payloads<Verdict>(connection).size() == 1);
        CHECK(story.payloads<Verdict>(connection).front().exit_code == 0);
        CHECK_FALSE(story.service.forgettable());
        story.say(connection, Goodbye{});
    }
    CHECK(story.service.forgettable());
}

TEST_CASE("RDZV-2: another version, job, size or NCCL is refused with 77 and both values") {
    ServiceStory story;
    NodeHello first = ServiceStory::hello("n1", 3);
    first.offer.nccl_version = "2.28.9";
    story.say(1, first);
    NodeHello second = ServiceStory::hello("n2", 3);
    SECTION("version") {
        second.oldest = second.newest = 99;
        story.say(2, second);
        CHECK_THAT(refusal_of(story, 2).words, Contains("99"));
    }
    SECTION("job") {
        second.terms.job_id = "other";
        story.say(2, second);
        CHECK_THAT(refusal_of(story, 2).words, Contains("'job'") && Contains("'other'"));
    }
    SECTION("size: nobody knows who is right, so all end") {
        second.terms.min_nodes = second.terms.max_nodes = 2;
        story.say(2, second);
        CHECK_THAT(refusal_of(story, 2).words,
                   Contains("node n2 has nnodes=2, node n1 has nnodes=3"));
        CHECK(refusal_of(story, 1).words == refusal_of(story, 2).words);
        CHECK(story.service.forgettable());
    }
    SECTION("max-restarts") {
        second.terms.max_restarts = 4;
        story.say(2, second);
        CHECK_THAT(refusal_of(story, 2).words, Contains("max-restarts=4"));
    }
    SECTION("NCCL") {
        second.offer.nccl_version = "2.21.5";
        story.say(2, second);
        CHECK_THAT(refusal_of(story, 2).words, Contains("2.21.5") && Contains("2.28.9"));
    }
    CHECK(refusal_of(story, 2).exit_code == exit_code::not_authorised);
}

TEST_CASE("RDZV-2: once the group runs, a mismatch costs the newcomer only") {
    ServiceStory story;
    story.running();
    story.say(3, ServiceStory::hello("n3", 5));
    CHECK(refusal_of(story, 3).exit_code == exit_code::not_authorised);
    CHECK(story.all<NodeRefused>(1).empty());
    CHECK(story.service.status(story.now).state == "running");
}

TEST_CASE("RDZV-3: once a node is done, the next run waits for this one to close") {
    ServiceStory story;
    story.running();
    story.tell(1, NodeDone{1});
    story.say(3, ServiceStory::hello("n3"));
    CHECK(refusal_of(story, 3).retry_later);
    CHECK_THAT(refusal_of(story, 3).words, Contains("still closing"));
}

TEST_CASE(
    "RDZV-7: a closed connection is told to everybody at once, and is forgiven when it is back") {
    ServiceStory story;
    story.running();
    story.feed(PeerGone{2});
    story.wait(500ms);
    const auto notices = story.payloads<Notice>(1);
    REQUIRE_FALSE(notices.empty());
    CHECK_THAT(notices.back().words, Contains("n2"));
    story.wait(4s);
    NodeHello back = ServiceStory::hello("n2");
    back.job_incarnation = "11111111111111111111111111111111";
    back.heard = 1;
    story.say(9, back);
    CHECK(story.all<NodeWelcome>(9).size() == 1);
    story.wait(8s);
    CHECK(story.payloads<StopRound>(1).empty());
}

TEST_CASE("RDZV-7: who does not come back is lost, and learns so when it does") {
    ServiceStory story;
    story.running();
    story.feed(PeerGone{2});
    for (int second = 0; second < 16; ++second) {
        story.wait(1s);
        story.say(1, Heartbeat{static_cast<std::uint64_t>(second), 0});
    }
    REQUIRE(story.payloads<StopRound>(1).size() == 1);
    CHECK(story.payloads<StopRound>(1).front().cause.kind == CauseKind::node_lost);
    NodeHello back = ServiceStory::hello("n2");
    back.job_incarnation = "11111111111111111111111111111111";
    story.say(9, back);
    CHECK(refusal_of(story, 9).exit_code == exit_code::group_lost);
    CHECK_THAT(refusal_of(story, 9).words, Contains("n2"));
}

TEST_CASE("an obituary with the right token is a loss at once; any other is nothing") {
    ServiceStory story;
    story.running();
    story.say(5, Obituary{"job", "token of nobody"});
    CHECK(story.payloads<StopRound>(1).empty());
    story.say(6, Obituary{"job", "token of n2"});
    story.wait(300ms);
    REQUIRE(story.payloads<StopRound>(1).size() == 1);
    CHECK(story.payloads<StopRound>(1).front().cause.node_name == "n2");
}

TEST_CASE("what was not heard is sent again after a resume, what was heard is applied once") {
    ServiceStory story;
    story.running();
    const std::size_t before = story.all<FromServerPayload>(2).size();
    story.feed(PeerGone{2});
    NodeHello back = ServiceStory::hello("n2");
    back.job_incarnation = "11111111111111111111111111111111";
    story.say(9, back);  // heard nothing
    CHECK(story.all<FromServerPayload>(9).size() >= before);
    CHECK(story.payloads<RoundGranted>(9).size() == 1);
    const FromNodePayload done{1, 0, ToJob(ToCoordinator(NodeDone{1}))};
    story.say(9, done);
    story.say(9, done);
    story.say(9, FromNodePayload{3, 0, ToJob(ToCoordinator(RoundGone{1}))});  // 2 is missing
    story.tell(1, NodeDone{1});
    CHECK(story.payloads<Verdict>(9).size() == 1);
    CHECK(story.payloads<Verdict>(9).front().exit_code == 0);
}

TEST_CASE("keys are seen by all nodes of a round and by none of the next") {
    ServiceStory story;
    story.running(3);
    story.tell(1, set(1, 0, "key", "value"));
    story.tell(2, get(1, 1, "key"));
    const auto answers = story.payloads<StoreAnswered>(2);
    REQUIRE(answers.size() == 1);
    CHECK(std::get<StoreValue>(answers.front().reply).value == "value");
    CHECK(answers.front().writes == 1);
    CHECK(story.payloads<StoreAnswered>(1).front().wrote);

    story.tell(2, FailureReport{1, failure(3)});
    story.wait(300ms);
    for (const ConnectionId connection : {1, 2}) story.tell(connection, RoundGone{1});
    REQUIRE(story.payloads<RoundGranted>(2).size() == 2);
    story.tell(2, get(2, 1, "key"));
    story.tell(2, get(1, 1, "key"));
    const auto later = story.payloads<StoreAnswered>(2);
    REQUIRE(later.size() == 3);
    CHECK(std::get<StoreFailed>(later[1].reply).error == StoreError::timed_out);
    CHECK(std::get<StoreFailed>(later[2].reply).error == StoreError::aborted);
}

TEST_CASE("waits end when their round is stopped") {
    ServiceStory story;
    story.running(3);
    story.tell(1, StoreAsked{1, 0, StoreBarrier{5, "b", 0, 60'000}});
    CHECK(story.payloads<StoreAnswered>(1).empty());
    story.tell(2, FailureReport{1, failure(3)});
    story.wait(300ms);
    const auto answers = story.payloads<StoreAnswered>(1);
    REQUIRE(answers.size() == 1);
    CHECK(std::get<StoreFailed>(answers.front().reply).error == StoreError::aborted);
}

// --- a server that starts empty -----------------------------------------------------------------

namespace {

NodeHello resumer(int number, bool done = false) {
    NodeHello hello = ServiceStory::hello("n" + std::to_string(number));
    hello.job_incarnation = "22222222222222222222222222222222";
    hello.standing.grant.round = 4;
    hello.standing.grant.world_size = hello.standing.grant.node_count = 2;
    hello.standing.grant.node_rank = hello.standing.grant.first_rank = number - 1;
    hello.standing.grant.digest = 77;
    hello.standing.done = done;
    return hello;
}
PresentKeys knows(const std::string& key, const std::string& value, std::uint64_t writes,
                  std::uint64_t own) {
    PresentKeys keys;
    keys.round = 4;
    keys.keys.push_back({key, value, false, writes, own});
    return keys;
}

}  // namespace

TEST_CASE(
    "RDZV-10: an empty server adopts the job that comes back, with its keys, and restarts nobody") {
    ServiceStory story;
    for (const int number : {1, 2}) {
        const auto connection = static_cast<ConnectionId>(number);
        story.say(connection, resumer(number));
        const auto welcome = story.all<NodeWelcome>(connection);
        REQUIRE(welcome.size() == 1);
        CHECK(welcome.front().present_keys);
        CHECK(welcome.front().job_incarnation == "22222222222222222222222222222222");
    }
    story.say(1, knows("key", "old", 1, 1));
    story.tell(1, get(4, 0, "key"));
    story.say(1, Heartbeat{1, 0});
    CHECK(story.payloads<StoreAnswered>(1).empty());  // n2 may know better
    story.say(2, knows("key", "new", 2, 1));
    CHECK(story.payloads<StoreAnswered>(1).empty());  // and repeat what may be lost
    story.say(2, Heartbeat{1, 0});
    const auto answers = story.payloads<StoreAnswered>(1);
    REQUIRE(answers.size() == 1);
    CHECK(std::get<StoreValue>(answers.front().reply).value == "new");
    story.wait(500ms);
    CHECK(story.payloads<StopRound>(1).empty());
    CHECK(story.payloads<RoundGranted>(1).empty());
    for (const ConnectionId connection : {1, 2}) story.tell(connection, NodeDone{4});
    CHECK(story.payloads<Verdict>(2).front().exit_code == 0);
}

TEST_CASE("RDZV-10: a write that the lost server may have made is not made twice") {
    ServiceStory story;
    for (const int number : {1, 2}) {
        story.say(static_cast<ConnectionId>(number), resumer(number));
    }
    // Two writes were seen, one of them was answered: the other one is n2's, still open.
    story.say(1, knows("count", "2", 2, 1));
    PresentKeys none;
    none.round = 4;
    story.say(2, none);
    story.tell(2, StoreAsked{4, 1, StoreAdd{9, "count", 1}});
    story.tell(2, StoreAsked{4, 1, StoreAdd{10, "other", 1}});
    for (const ConnectionId connection : {1, 2}) story.say(connection, Heartbeat{1, 0});
    const auto answers = story.payloads<StoreAnswered>(2);
    REQUIRE(answers.size() == 2);
    CHECK(std::holds_alternative<StoreFailed>(answers[0].reply));
    CHECK(std::get<StoreNumber>(answers[1].reply).value == 1);
}

TEST_CASE(
    "RDZV-10: a node that never heard the new server's welcome is not told by the old one's "
    "count") {
    ServiceStory story;
    story.say(1, resumer(1));
    NodeHello second = resumer(2);
    second.heard = 40;  // of the old server
    story.say(2, second);
    PresentKeys none;
    none.round = 4;
    story.say(1, none);
    // n1 is told to stop: n2 has to hear of it. But its connection is gone, welcome included.
    Leave leave;
    leave.cause.kind = CauseKind::node_left;
    leave.cause.words = "n1 leaves";
    story.tell(1, leave);
    story.feed(PeerGone{2});
    story.say(9, second);
    story.say(9, none);
    CHECK(story.payloads<StopRound>(9).size() == 1);
}

TEST_CASE("RDZV-10: who does not come back to a rebuilt server is lost with the window") {
    ServiceStory story;
    story.say(1, resumer(1));
    PresentKeys none;
    none.round = 4;
    story.say(1, none);
    for (int second = 0; second < 17; ++second) {
        story.wait(1s);
        story.say(1, Heartbeat{static_cast<std::uint64_t>(second), 0});
    }
    REQUIRE(story.payloads<StopRound>(1).size() == 1);
    CHECK(story.payloads<StopRound>(1).front().cause.kind == CauseKind::node_lost);
}

TEST_CASE("RDZV-10: a group that runs already refuses another incarnation") {
    ServiceStory story;
    story.running();
    NodeHello foreign = resumer(1);
    foreign.node_incarnation = "of another run";
    story.say(9, foreign);
    CHECK(refusal_of(story, 9).exit_code == exit_code::group_lost);
}
