// Nodes and their jobs, through the door.
#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/preface.hpp"
#include "tests/process/server/peers.hpp"
#include "tests/support/catch.hpp"

#include <memory>
#include <set>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Two nodes that were granted round 1.
struct RunningJob {
    explicit RunningJob(TestServer& server) : first(server.port), second(server.port) {
        first.greet(hello_of(0));
        second.greet(hello_of(1));
        REQUIRE(server.await(
            [&] { return first.told<RoundGranted>() && second.told<RoundGranted>(); }));
    }
    RawClient first;
    RawClient second;
};

}  // namespace

TEST_CASE("nodes of a job are welcomed and granted one round") {
    TestServer server;
    std::vector<std::unique_ptr<RawClient>> nodes;
    for (int node = 0; node < 5; ++node) {
        nodes.push_back(std::make_unique<RawClient>(server.port));
        nodes.back()->greet(hello_of(node, 5));
    }
    std::set<int> ranks;
    for (const auto& node : nodes) {
        REQUIRE(server.await([&] { return node->told<RoundGranted>() != nullptr; }));
        CHECK(node->heard<NodeWelcome>() != nullptr);
        CHECK(node->told<RoundGranted>()->world_size == 5);
        ranks.insert(node->told<RoundGranted>()->node_rank);
    }
    CHECK(ranks == std::set<int>{0, 1, 2, 3, 4});
    CHECK(server.server.status().jobs.size() == 1);
    CHECK(server.server.status().strangers == 0);
    CHECK(server.said.empty());
}

TEST_CASE("many jobs meet at one server and do not see each other") {
    TestServer server;
    std::vector<std::unique_ptr<RawClient>> nodes;
    for (int job = 0; job < 20; ++job) {
        for (int node = 0; node < 2; ++node) {
            nodes.push_back(std::make_unique<RawClient>(server.port));
            nodes.back()->greet(hello_of(node, 2, "job" + std::to_string(job)));
        }
    }
    std::set<std::string> incarnations;
    for (const auto& node : nodes) {
        REQUIRE(server.await([&] { return node->told<RoundGranted>() != nullptr; }));
        CHECK(node->told<RoundGranted>()->node_count == 2);
        incarnations.insert(node->heard<NodeWelcome>()->job_incarnation);
    }
    CHECK(incarnations.size() == 20);
}

TEST_CASE("heartbeats are answered with their number") {
    TestServer server;
    RunningJob job(server);
    job.first.say(Heartbeat{7, 1});
    REQUIRE(server.await([&] { return job.first.heard<HeartbeatSeen>() != nullptr; }));
    CHECK(job.first.heard<HeartbeatSeen>()->number == 7);
    CHECK(job.first.heard<HeartbeatSeen>()->round == 1);
}

TEST_CASE("an embedded server serves its own job only, and says so to others") {
    TestServer server([](auto& settings) { settings.jobs.only = "mine"; });
    RawClient other(server.port);
    other.greet(hello_of(0, 2, "yours"));
    REQUIRE(server.await([&] { return other.heard<NodeRefused>() != nullptr; }));
    CHECK(other.heard<NodeRefused>()->exit_code == 77);
    CHECK(contains(other.heard<NodeRefused>()->words, "'mine'"));
    CHECK(contains(other.heard<NodeRefused>()->words, "'yours'"));
    CHECK(server.await([&] { return other.closed(); }));
}

TEST_CASE("a server takes so many jobs and no more") {
    TestServer server([](auto& settings) { settings.jobs.most_jobs = 1; });
    RawClient first(server.port), second(server.port);
    first.greet(hello_of(0, 2, "a"));
    REQUIRE(server.await([&] { return first.heard<NodeWelcome>() != nullptr; }));
    second.greet(hello_of(0, 2, "b"));
    REQUIRE(server.await([&] { return second.heard<NodeRefused>() != nullptr; }));
    CHECK(second.heard<NodeRefused>()->retry_later);
    CHECK(server.server.status().jobs.size() == 1);
}

TEST_CASE("another protocol version is refused in words") {
    TestServer server;
    RawClient node(server.port);
    NodeHello hello = hello_of(0);
    hello.oldest = 7;
    hello.newest = 9;
    hello.build = "9.9.9";
    node.greet(hello);
    REQUIRE(server.await([&] { return node.heard<NodeRefused>() != nullptr; }));
    CHECK(node.heard<NodeRefused>()->exit_code == 77);
    CHECK(contains(node.heard<NodeRefused>()->words, "9.9.9"));
    CHECK(contains(node.heard<NodeRefused>()->words, "0.1.0"));
}

TEST_CASE("a job that ran before a restart waits for its nodes; a fresh launch is told so") {
    TestServer server(
        [](auto& settings) { settings.jobs.awaited["job"] = ddrun::detail::now() + 60s; });
    RawClient fresh(server.port), other(server.port), back(server.port);
    fresh.greet(hello_of(0));
    REQUIRE(server.await([&] { return fresh.heard<NodeRefused>() != nullptr; }));
    CHECK(fresh.heard<NodeRefused>()->retry_later);
    CHECK(contains(fresh.heard<NodeRefused>()->words, "restarted"));
    other.greet(hello_of(0, 2, "other"));
    CHECK(server.await([&] { return other.heard<NodeWelcome>() != nullptr; }));
    NodeHello resume = hello_of(1);
    resume.job_incarnation = std::string(32, 'c');
    resume.standing.grant = {1, 2, 1, 2, 1, 0, "10.9.0.1", 40000, 5};
    back.greet(resume);
    REQUIRE(server.await([&] { return back.heard<NodeWelcome>() != nullptr; }));
    CHECK(back.heard<NodeWelcome>()->job_incarnation == resume.job_incarnation);
}

TEST_CASE("a closed connection makes the others hear of it within half a second") {
    TestServer server;
    RunningJob job(server);
    const auto begin = ddrun::detail::now();
    job.second.reset();
    REQUIRE(server.await([&] { return job.first.told<Notice>() != nullptr; }));
    CHECK(ddrun::detail::now() - begin < 500ms);
    CHECK(contains(job.first.told<Notice>()->words, "n1"));
}

TEST_CASE("an obituary from nowhere ends a node at once, with the right token only") {
    TestServer server;
    RunningJob job(server);
    const auto obituary = [&](const std::string& token) {
        return RawClient(server.port,
                         preface(PrefaceKind::obituary) + encode(FromNode(Obituary{"job", token})));
    };
    {
        RawClient wrong = obituary("no token");
        CHECK(server.await([&] { return wrong.closed(); }));
        CHECK(job.first.told<StopRound>() == nullptr);
        CHECK(job.first.told<Verdict>() == nullptr);
    }
    RawClient right = obituary(hello_of(1).obituary_token);
    CHECK(server.await([&] {
        return job.first.told<StopRound>() != nullptr || job.first.told<Verdict>() != nullptr;
    }));
}

TEST_CASE("the verdict reaches all, and then the server is not needed any more") {
    TestServer server([](auto& settings) { settings.jobs.only = "job"; });
    bool told = false;
    server.server.on_told([&] { told = true; });
    {
        RunningJob job(server);
        CHECK_FALSE(server.server.all_told());
        for (RawClient* node : {&job.first, &job.second}) {
            node->say(FromNodePayload{1, 1, ToCoordinator(NodeDone{1})});
        }
        REQUIRE(
            server.await([&] { return job.first.told<Verdict>() && job.second.told<Verdict>(); }));
        CHECK(job.first.told<Verdict>()->exit_code == 0);
        for (RawClient* node : {&job.first, &job.second}) node->say(Goodbye{});
        CHECK(server.await([&] { return told && server.server.all_told(); }));
    }
    RawClient late(server.port);
    late.greet(hello_of(0));
    REQUIRE(server.await([&] { return late.heard<NodeRefused>() != nullptr; }));
    CHECK(late.heard<NodeRefused>()->retry_later);
}

TEST_CASE("the next run of an id is another job") {
    TestServer server;
    std::set<std::string> incarnations;
    for (int run = 0; run < 3; ++run) {
        RunningJob job(server);
        incarnations.insert(job.first.heard<NodeWelcome>()->job_incarnation);
        for (RawClient* node : {&job.first, &job.second}) {
            node->say(FromNodePayload{1, 1, ToCoordinator(NodeDone{1})});
            node->say(Goodbye{});
        }
        REQUIRE(server.await([&] { return server.server.all_told(); }));
    }
    CHECK(incarnations.size() == 3);
}
