// Ten thousand nodes: what each of them says must not cost a look at all the others.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

#include <string>

using namespace ddrun::testing;

namespace {

constexpr int many = 10'000;

std::string name_of(int node) {
    return "n" + std::to_string(node);
}

// Counts what is said instead of keeping it.
struct Crowd {
    explicit Crowd(JobRules rules) : job(std::move(rules)) {}

    void say(int node, ToCoordinator message) { happens(NodeMessage{node, std::move(message)}); }
    void happens(const CoordinatorEvent& event) { count(job.step(event, now)); }
    void passes(ddrun::Duration time) {
        const auto end = now + time;
        for (auto due = job.next_deadline(); due && *due <= end; due = job.next_deadline()) {
            now = std::max(now, *due);
            count(job.advance_to(now));
        }
        now = end;
    }
    void count(const Coordinator::Actions& answers) {
        for (const NodeAnswer& answer : answers) {
            grants += std::holds_alternative<RoundGranted>(answer.message);
            stops += std::holds_alternative<StopRound>(answer.message);
            verdicts += std::holds_alternative<Verdict>(answer.message);
            notices += std::holds_alternative<Notice>(answer.message);
        }
    }
    void form() {
        for (int node = 0; node < many; ++node) {
            Join join = join_of(name_of(node));
            join.wished_node_rank = node % 2 == 0 ? node : -1;
            join.topology_group = "rack " + std::to_string(node / 32);
            say(node, join);
        }
    }

    Coordinator job;
    ddrun::TimePoint now{1h};
    int grants = 0, stops = 0, verdicts = 0, notices = 0;
};

}  // namespace

TEST_CASE("ten thousand nodes join, fail, restart and finish") {
    Crowd crowd(group_of(many, 1));
    crowd.form();
    CHECK(crowd.grants == many);
    for (int node = 0; node < many; ++node) crowd.say(node, FailureReport{1, exited(3, node)});
    crowd.passes(200ms);
    CHECK(crowd.stops == many);
    for (int node = 0; node < many; ++node) crowd.say(node, RoundGone{1});
    CHECK(crowd.grants == 2 * many);
    for (int node = 0; node < many; ++node) crowd.say(node, NodeDone{2});
    CHECK(crowd.verdicts == many);
}

TEST_CASE("a cut of ten thousand nodes is told in few lines, and nothing else comes of it") {
    Crowd crowd(group_of(many));
    crowd.form();
    for (int node = 0; node < many; ++node) {
        crowd.happens(NodeSuspect{node, true});
        if (node % 1000 == 0) crowd.passes(100ms);
    }
    crowd.passes(3s);
    for (int node = 0; node < many; ++node) {
        crowd.happens(NodeSuspect{node, false});
        if (node % 1000 == 0) crowd.passes(100ms);
    }
    crowd.passes(1s);
    CHECK(crowd.stops == 0);
    CHECK(crowd.notices < 20 * many);
    CHECK(crowd.job.state_name() == "running");
}

TEST_CASE("ten thousand nodes that wait all leave at once") {
    Crowd crowd(group_of(many + 1));
    crowd.form();
    for (int node = 0; node < many; ++node) crowd.say(node, Leave{stopped_by(2)});
    CHECK(crowd.verdicts == many);
    CHECK(crowd.notices == 0);
}

TEST_CASE("half of ten thousand nodes are lost; the other half goes on") {
    JobRules rules = group_of_between(2, many, 1);
    Crowd crowd(rules);
    crowd.form();
    for (int node = 0; node < many; node += 2) {
        crowd.happens(NodeLost{node, "switch", false, crowd.now});
    }
    crowd.passes(200ms);
    for (int node = 1; node < many; node += 2) crowd.say(node, RoundGone{1});
    CHECK(crowd.job.round() == 2);
    CHECK(crowd.grants == many + many / 2);
    CHECK(crowd.job.restarts_used() == 1);
}

TEST_CASE("ten thousand nodes come back to a server that started empty") {
    Crowd before(group_of(many));
    std::vector<Presented> all;
    for (int node = 0; node < many; ++node) {
        Join join = join_of(name_of(node));
        for (const NodeAnswer& answer : before.job.step({node, join}, before.now)) {
            Presented presented{answer.node, join_of(name_of(answer.node)), {}};
            presented.standing.grant = std::get<RoundGranted>(answer.message);
            all.push_back(presented);
        }
    }
    Coordinator restored = Coordinator::restore(group_of(many), {all.front()}, before.now);
    for (std::size_t i = 1; i < all.size(); ++i) (void)restored.step(all[i], before.now);
    CHECK(restored.absent_nodes().empty());
    CHECK(restored.digest() == before.job.digest());
}
