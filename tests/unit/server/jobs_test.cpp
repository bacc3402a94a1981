#include "rendezvous/server/jobs.hpp"
#include "tests/support/catch.hpp"

#include <string>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace std::chrono_literals;

namespace {

const TimePoint start{1h};

JobsSettings settings() {
    JobsSettings made;
    made.build = "0.1.0";
    made.fresh_incarnation = [n = 0]() mutable { return "run" + std::to_string(++n); };
    made.fresh_seed = [] { return std::uint64_t{0}; };
    return made;
}

NodeHello hello(const std::string& node, const std::string& job = "job", int nodes = 2) {
    NodeHello made;
    made.build = "0.1.0";
    made.terms.job_id = job;
    made.terms.min_nodes = made.terms.max_nodes = nodes;
    made.offer.node_name = made.offer.address = made.node_incarnation = made.obituary_token = node;
    return made;
}

// What was sent to this connection, by kind: "welcome", "refused", "grant" ..., "close".
std::string told(const Jobs::Actions& actions, ConnectionId connection) {
    std::string all;
    for (const ServiceAction& action : actions) {
        if (const auto* close = std::get_if<ClosePeer>(&action)) {
            if (close->connection == connection) all += "close ";
            continue;
        }
        const auto& send = std::get<SendToPeer>(action);
        if (send.connection != connection) continue;
        if (const auto* refused = std::get_if<NodeRefused>(&send.message)) {
            all += "refused " + std::to_string(refused->exit_code) +
                   (refused->retry_later ? " later " : " ");
        }
        if (std::holds_alternative<NodeWelcome>(send.message)) all += "welcome ";
        const auto* payload = std::get_if<FromServerPayload>(&send.message);
        const auto* said = payload ? std::get_if<FromCoordinator>(&payload->payload) : nullptr;
        if (said != nullptr && std::holds_alternative<RoundGranted>(*said)) all += "grant ";
        if (said != nullptr && std::holds_alternative<Verdict>(*said)) all += "verdict ";
    }
    return all;
}

Jobs::Actions form(Jobs& jobs) {
    Jobs::Actions all = jobs.step(PeerSaid{1, hello("a")}, start);
    for (auto& action : jobs.step(PeerSaid{2, hello("b")}, start)) all.push_back(action);
    return all;
}
Jobs::Actions finish(Jobs& jobs) {
    Jobs::Actions all;
    for (const ConnectionId node : {1, 2}) {
        const FromNodePayload done{1, 1, ToCoordinator(NodeDone{1})};
        for (auto& action : jobs.step(PeerSaid{node, done}, start + 1s)) all.push_back(action);
    }
    for (const ConnectionId node : {1, 2}) {
        for (auto& action : jobs.step(PeerSaid{node, Goodbye{}}, start + 1s)) all.push_back(action);
    }
    return all;
}

}  // namespace

TEST_CASE("a hello takes its connection to its job; the earliest deadline of all jobs counts") {
    Jobs jobs(settings());
    CHECK(jobs.all_told());
    CHECK_FALSE(jobs.next_deadline());
    CHECK(told(jobs.step(PeerSaid{7, hello("x", "other")}, start - 1min), 7) == "welcome ");
    const auto first = jobs.next_deadline();
    REQUIRE(first);
    const auto actions = form(jobs);
    CHECK(told(actions, 1) == "welcome grant ");
    CHECK(told(actions, 2) == "welcome grant ");
    CHECK(jobs.next_deadline() == first);
    CHECK(jobs.status(start).size() == 2);
    CHECK_FALSE(jobs.all_told());
}

TEST_CASE("a connection without a job, or of one that is forgotten, is closed") {
    Jobs jobs(settings());
    CHECK(told(jobs.step(PeerSaid{1, Heartbeat{1, 0}}, start), 1) == "close ");
    (void)form(jobs);
    const auto end = finish(jobs);
    CHECK(told(end, 1).find("verdict ") != std::string::npos);
    CHECK(jobs.all_told());
    CHECK(told(jobs.step(PeerSaid{1, Heartbeat{1, 0}}, start + 2s), 1) == "close ");
    CHECK(jobs.step(PeerGone{1}, start + 2s).empty());
    CHECK_FALSE(jobs.next_deadline());
}

TEST_CASE("an embedded server is for one run of one job") {
    JobsSettings embedded = settings();
    embedded.only = "job";
    Jobs jobs(std::move(embedded));
    CHECK(told(jobs.step(PeerSaid{9, hello("z", "other")}, start), 9) == "refused 77 close ");
    (void)form(jobs);
    (void)finish(jobs);
    CHECK(jobs.all_told());
    CHECK(told(jobs.step(PeerSaid{3, hello("c")}, start + 2s), 3) == "refused 75 later close ");
}

TEST_CASE("an embedded server outlives nodes that were refused or left before anything began") {
    JobsSettings embedded = settings();
    embedded.only = "job";
    Jobs jobs(std::move(embedded));
    NodeHello foreign = hello("v");
    foreign.oldest = foreign.newest = 99;
    CHECK(told(jobs.step(PeerSaid{8, foreign}, start), 8) == "refused 77 close ");
    CHECK(told(jobs.step(PeerSaid{9, hello("gone")}, start), 9) == "welcome ");
    (void)jobs.step(PeerSaid{9, Goodbye{}}, start);
    const auto actions = form(jobs);
    CHECK(told(actions, 2) == "welcome grant ");
}

TEST_CASE("a job that ran before the restart is kept for its nodes, for a while") {
    JobsSettings restarted = settings();
    restarted.awaited["job"] = start + 60s;
    Jobs jobs(std::move(restarted));
    CHECK(told(jobs.step(PeerSaid{1, hello("new")}, start), 1) == "refused 75 later close ");
    SECTION("nobody comes back: the id is free again") {
        CHECK(told(jobs.step(PeerSaid{2, hello("new")}, start + 60s), 2) == "welcome ");
    }
    SECTION("one comes back, and then newcomers are those of its job") {
        NodeHello back = hello("old");
        back.job_incarnation = "run of old";
        CHECK(told(jobs.step(PeerSaid{2, back}, start + 1s), 2).rfind("welcome ", 0) == 0);
        CHECK(told(jobs.step(PeerSaid{3, hello("new")}, start + 2s), 3).rfind("welcome ", 0) == 0);
        CHECK(jobs.status(start + 2s).front().incarnation == "run of old");
    }
}

TEST_CASE("an obituary reaches the job it names, and no other") {
    Jobs jobs(settings());
    (void)form(jobs);
    CHECK(jobs.obituary({"nobody's", "a"}, start).empty());
    CHECK(jobs.obituary({"job", "no token"}, start).empty());
    (void)jobs.obituary({"job", "b"}, start);
    const auto status = jobs.status(start);
    REQUIRE(status.size() <= 1);
    if (!status.empty()) CHECK(status.front().state != "running");
}
