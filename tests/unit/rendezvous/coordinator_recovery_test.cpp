// A server that starts empty learns its job from the nodes that come back.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

namespace {

// A job before the server died, and what its nodes would present afterwards.
struct Before : JobStory {
    explicit Before(JobRules rules) : JobStory(rules), rules_(std::move(rules)) { form(); }

    Presented presents(int node) {
        Presented presented{100 + node, join_of("n" + std::to_string(node)), {}};
        presented.standing.grant = grant_of(node);
        presented.standing.restarts_used = coordinator().restarts_used();
        return presented;
    }
    std::vector<Presented> all_present() {
        std::vector<Presented> all;
        for (int node = 0; node < rules_.nodes; ++node) all.push_back(presents(node));
        return all;
    }

    JobRules rules_;
};

NodeLost never_came_back(int node_rank, ddrun::Duration fenced_in = 0ms) {
    return {absent_node(node_rank), "it did not come back to the restarted server", false,
            ddrun::TimePoint(1h) + fenced_in};
}

}  // namespace

TEST_CASE("RDZV-10 all nodes come back: the round goes on and nobody hears a word") {
    Before before(group_of(3, 2));
    JobStory job(before.rules_, before.all_present());
    CHECK(job.silent());
    CHECK(job.coordinator().round() == 1);
    CHECK(job.coordinator().state_name() == "running");
    CHECK(job.coordinator().digest() == before.coordinator().digest());
    CHECK(job.coordinator().world_size() == 6);
    CHECK(job.coordinator().absent_nodes().empty());
    for (int node : {0, 1, 2}) job.done(node);
    CHECK(job.heard<Verdict>(1).exit_code == 0);
}

TEST_CASE("nodes come back one after the other; a failure is handled as ever") {
    Before before(group_of(2, 2));
    JobStory job(before.rules_, {before.presents(1)});
    CHECK(job.coordinator().absent_nodes() == std::vector<int>{absent_node(0)});
    job.fails(1, exited(4, 2));
    job.passes(3s);
    (void)job.notices(1);
    CHECK(job.silent(1));  // the silent one may know an older failure
    job.happens(before.presents(0));
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 4);
    job.survivors_are_clear({0, 1});
    CHECK(job.grant_of(0).round == 2);
    CHECK(job.grant_of(1).node_rank == 1);
}

TEST_CASE("RDZV-10 a node that never comes back is lost, and its fence is awaited") {
    Before before(group_of(2, 2));
    JobStory job(before.rules_, {before.presents(1)});
    job.joins(5);
    CHECK(job.heard<Parked>(5) == Parked{});
    job.happens(never_came_back(0, 15s));
    job.passes(200ms);
    (void)job.notices(1);
    const auto stop = job.heard<StopRound>(1);
    CHECK(stop.cause.kind == CauseKind::node_lost);
    CHECK(stop.restarts_used == 1);
    job.survivors_are_clear({1});
    job.passes(14s);
    CHECK(job.round() == 1);
    job.passes(1s);
    CHECK(job.round() == 2);
    CHECK(job.grant_of(5).node_rank == 0);
    CHECK(job.grant_of(1).node_rank == 1);
}

TEST_CASE("restarts that were used before count") {
    Before before(group_of(2, 1));
    before.fails(0, exited(1));
    before.passes(200ms);
    before.all_gone();
    CHECK(before.round() == 2);
    JobStory job(before.rules_, before.all_present());
    CHECK(job.coordinator().restarts_used() == 1);
    job.fails(0, exited(9));
    job.passes(200ms);
    CHECK_FALSE(job.heard<StopRound>(0).will_restart);
}

TEST_CASE("flags are adopted: who is done, and who has nothing left") {
    Before before(group_of(2));
    auto all = before.all_present();
    all[1].standing.done = true;
    JobStory job(before.rules_, all);
    CHECK(job.coordinator().is_closing());
    job.done(0);
    CHECK(job.heard<Verdict>(1).exit_code == 0);
}

TEST_CASE("a node whose round failed while there was no server says why, and is waited for") {
    Before before(group_of(2, 2));
    Presented done = before.presents(0), failed = before.presents(1);
    done.standing.done = true;
    failed.standing.gone = true;
    JobStory job(before.rules_, {done, failed});
    job.passes(100ms);
    CHECK(job.coordinator().state_name() == "running");
    job.fails(1, exited(4, 2));
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 4);
}

TEST_CASE("a stop under way goes on; who did not hear of it is told") {
    Before before(group_of(2, 1));
    before.fails(0, exited(3));
    before.passes(200ms);
    auto all = before.all_present();
    all[0].standing.stop = StopRound{1, exited(3), 1, 1, true, 0ms, {}};
    all[0].standing.gone = true;
    if (GENERATE(false, true)) std::swap(all[0], all[1]);
    JobStory job(before.rules_, all);
    CHECK(job.heard<StopRound>(1).cause.failure.status.value == 3);
    CHECK(job.silent(0));
    job.survivors_are_clear({1});
    CHECK(job.grant_of(0).round == 2);
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("a verdict that one node heard is told to all") {
    Before before(group_of(3));
    auto all = before.all_present();
    const Verdict verdict{5, true, exited(5), 0, {}};
    all[1].standing.verdict = verdict;
    JobStory job(before.rules_, all);
    CHECK(job.heard<Verdict>(0) == verdict);
    CHECK(job.silent(1));
    CHECK(job.heard<Verdict>(2) == verdict);
    CHECK(job.coordinator().is_over());
}

TEST_CASE("the server died between two messages of one grant: the rest is said again") {
    Before before(group_of(4, 1));
    const auto of_round_1 = before.all_present();
    before.fails(0, exited(1));
    before.passes(200ms);
    before.all_gone();
    CHECK(before.round() == 2);
    auto mixed = before.all_present();
    for (const std::size_t missed : {1u, 2u}) {
        mixed[missed] = of_round_1[missed];
        mixed[missed].standing.gone = true;
    }
    std::rotate(mixed.begin(), mixed.begin() + GENERATE(0, 1, 2, 3), mixed.end());
    JobStory job(before.rules_, mixed);
    for (int node : {1, 2}) CHECK(job.heard<RoundGranted>(node) == before.grant_of(node));
    CHECK(job.silent());
    CHECK(job.coordinator().absent_nodes().empty());
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("a spare that was to take a hole, and missed the grant, takes it") {
    Before before(with_spares(group_of(3, 1), 1));
    before.joins(3);
    before.is_lost(1);
    before.passes(200ms);
    before.survivors_are_clear({0, 2});
    CHECK(before.grant_of(3).node_rank == 1);
    auto spare = before.presents(3);
    spare.standing.grant = {};
    spare.standing.grant.round = 0;
    JobStory job(before.rules_, {spare, before.presents(0), before.presents(2)});
    CHECK(job.heard<RoundGranted>(3) == before.grant_of(3));
}

TEST_CASE("a newcomer does not get the seat of a node that may come back") {
    Before before(group_of(2, 1));
    JobStory job(before.rules_, {before.presents(0)});
    job.joins(7);
    CHECK(job.heard<Parked>(7) == Parked{});
    job.happens(before.presents(1));
    CHECK(job.heard<Verdict>(7).cause.words == "the group of 2 nodes is complete");
    CHECK(job.silent(0));
}

TEST_CASE(
    "a server that dies while the group forms loses nothing, once no round can run any more") {
    std::vector<Presented> waiting;
    for (int node : {0, 1}) {
        waiting.push_back({100 + node, join_of("n" + std::to_string(node)), {}});
        waiting.back().standing.grant.round = 0;
    }
    JobStory job(group_of(2), waiting);
    CHECK(job.silent());
    job.happens(never_came_back(0));
    CHECK(job.heard<RoundGranted>(0).round == 1);
    CHECK(job.heard<RoundGranted>(1).round == 1);
}

TEST_CASE("a spare that comes back first starts nothing of its own") {
    Before before(with_spares(group_of(1, 1), 1));
    Presented spare{101, join_of("n1"), {}};
    spare.standing.grant.round = 0;
    JobStory job(before.rules_, {spare});
    job.passes(14s);
    CHECK(job.silent(1));
    SECTION("the others come") {
        job.happens(before.presents(0));
        CHECK(job.silent());
        CHECK(job.coordinator().round_of(100) == 1);
        CHECK(job.coordinator().round_of(101) == 0);
    }
    SECTION("nobody comes before the window ends") {
        for (const int absent : job.coordinator().absent_nodes()) {
            job.happens(NodeLost{absent, "never came", false, {}});
        }
        CHECK(job.heard<RoundGranted>(1).round == 1);
    }
}

TEST_CASE("a node that was started again is not taken for the one before it") {
    Before before(group_of(2, 1));
    Presented again{109, join_of("n1"), {}};
    again.offer.port = 40001;
    again.standing.grant.round = 0;
    JobStory job(before.rules_, {before.presents(0), again});
    CHECK(job.silent());
    CHECK(job.coordinator().absent_nodes() == std::vector<int>{absent_node(1)});
}
