// Nodes that die, fall silent or leave while the job runs.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

namespace {

struct Formed : JobStory {
    explicit Formed(JobRules rules) : JobStory(std::move(rules)) {
        form();
        forget_what_was_said();
    }
};

Formed with_a_parked_spare(int nodes, int restarts) {
    Formed job(with_spares(group_of(nodes, restarts), 1));
    job.joins(nodes);
    job.forget_what_was_said();
    return job;
}

}  // namespace

TEST_CASE("RDZV-7 a node is lost and no restart is left: 75 everywhere, and it is named") {
    Formed job(group_of(3));
    job.is_lost(1);
    job.passes(200ms);
    const auto stop = job.heard<StopRound>(0);
    CHECK_FALSE(stop.will_restart);
    CHECK(stop.cause.words == "node n1 was lost: killed");
    job.survivors_are_clear({0, 2});
    (void)job.heard<StopRound>(2);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 75);
    CHECK(verdict.cause.kind == CauseKind::node_lost);
    CHECK(verdict.cause.node_name == "n1");
    CHECK(verdict.cause.node_rank == 1);
    CHECK(job.heard<Verdict>(2) == verdict);
}

TEST_CASE("RDZV-7 everybody hears at once of a node that does not answer, and that it is back") {
    Formed job(group_of(3));
    job.falls_silent(1);
    job.passes(200ms);
    CHECK(job.notices(0) == "node n1 does not answer");
    CHECK(job.notices(1).empty());
    job.is_back(1);
    job.passes(200ms);
    CHECK(job.notices(2) == "node n1 does not answer | node n1 is back");
    job.falls_silent(0);
    job.is_back(0);
    job.passes(1s);
    CHECK(job.notices(2).empty());
}

TEST_CASE("RDZV-7 a node is lost: the survivors of MIN:MAX go on at once, order kept") {
    Formed job(group_of_between(2, 3, 1));
    job.is_lost(1);
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).restarts_used == 1);
    job.survivors_are_clear({0, 2});
    CHECK(job.round() == 2);
    CHECK(job.grant_of(0).node_rank == 0);
    CHECK(job.grant_of(2).node_rank == 1);
    CHECK(job.grant_of(2).world_size == 4);
}

TEST_CASE("a spare takes the lost node's place; it is charged and nobody is renumbered") {
    Formed job = with_a_parked_spare(3, 1);
    job.is_lost(1);
    job.passes(200ms);
    CHECK(job.silent(3));
    job.survivors_are_clear({0, 2});
    CHECK(job.round() == 2);
    CHECK(job.grant_of(0).node_rank == 0);
    CHECK(job.grant_of(3).node_rank == 1);
    CHECK(job.grant_of(2).node_rank == 2);
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("the next round waits for the fence of a node that may still run") {
    Formed job(group_of_between(1, 2, 1));
    job.is_lost(1, 10s);
    job.passes(200ms);
    job.survivors_are_clear({0});
    job.passes(9s + 799ms);
    CHECK(job.round() == 1);
    job.passes(1ms);
    CHECK(job.round() == 2);
}

TEST_CASE("a fixed group waits for a replacement, says so, and starts at once when it comes") {
    Formed job(group_of(2, 1));
    job.is_lost(1);
    job.passes(200ms);
    job.survivors_are_clear({0});
    CHECK(job.notices(0).find("1 of at least 2 nodes are there") != std::string::npos);
    job.passes(5min);
    CHECK(job.round() == 1);
    job.joins(2);
    CHECK(job.round() == 2);
    CHECK(job.grant_of(2).node_rank == 1);
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("no replacement comes within the join time-out: 75, and no restart was used") {
    Formed job(group_of(2, 1));
    job.is_lost(1);
    job.passes(200ms);
    job.survivors_are_clear({0});
    job.passes(10min);
    (void)job.notices(0);
    (void)job.heard<StopRound>(0);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 75);
    CHECK(verdict.cause.words == "node n1 was lost: killed; no replacement came within 600 s");
    CHECK(verdict.restarts_used == 0);
}

TEST_CASE("a newcomer that comes while the others stop is in the next round") {
    Formed job(group_of(2, 1));
    job.is_lost(1);
    job.passes(200ms);
    job.joins(2);
    job.survivors_are_clear({0});
    CHECK(job.grant_of(2).round == 2);
}

TEST_CASE("all nodes are lost: the job is over, whatever the budget") {
    Formed job(group_of(2, 5));
    job.is_lost(0);
    job.is_lost(1);
    CHECK(job.coordinator().is_over());
}

// --- cause --------------------------------------------------------------------------------------

TEST_CASE("EXIT-5 a node dies: the connections that break elsewhere are not the cause") {
    Formed job(group_of_between(1, 2));
    SECTION("its silence was noticed first") {
        job.falls_silent(1);
        job.fails(0, exited(1));
        job.passes(900ms);
        job.is_lost(1);
    }
    SECTION("the failure was reported first") {
        job.fails(0, exited(1));
        job.passes(50ms);
        job.falls_silent(1);
        job.passes(900ms);
        job.is_lost(1);
    }
    SECTION("it was lost before anything else was noticed") {
        job.fails(0, exited(1));
        job.passes(150ms);
        job.is_lost(1);
        job.passes(50ms);
    }
    (void)job.notices(0);
    CHECK(job.heard<StopRound>(0).cause.kind == CauseKind::node_lost);
}

TEST_CASE("a failure that is clearly older than the loss of another node stays the cause") {
    Formed job(group_of_between(1, 2));
    job.fails(0, exited(3, 0, 2s));
    job.is_lost(1);
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 3);
}

TEST_CASE("what a node reported before it died is older than its death") {
    Formed job(group_of_between(1, 2));
    job.fails(1, exited(3, 2));
    job.is_lost(1);
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 3);
}

TEST_CASE("while a node is silent it may know an older failure, so the cause is not decided") {
    Formed job(group_of(2));
    job.falls_silent(1);
    job.fails(0, exited(1, 0, 10ms));
    job.passes(4s);
    CHECK(job.notices(0) ==
          "node n1 does not answer | a failure is known; waiting for n1, which "
          "may know an older one");
    CHECK(job.silent(0));
    job.is_back(1);
    job.fails(1, exited(7, 2, 6s));
    job.passes(200ms);
    (void)job.notices(0);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 7);
}

TEST_CASE("a silent node that is back and has nothing to say holds nothing up") {
    Formed job(group_of(2));
    job.falls_silent(1);
    job.fails(0, exited(5));
    job.passes(1s);
    job.is_back(1);
    job.passes(200ms);
    (void)job.notices(1);
    CHECK(job.heard<StopRound>(1).cause.failure.status.value == 5);
}

// --- done nodes ---------------------------------------------------------------------------------

TEST_CASE("RDZV-9 a node that was done is lost: its workers did succeed") {
    Formed job(group_of(3));
    job.done(1);
    job.is_lost(1);
    job.done(0);
    CHECK(job.silent(0));
    job.done(2);
    CHECK(job.heard<Verdict>(0).exit_code == 0);
    CHECK(job.heard<Verdict>(2).exit_code == 0);
}

TEST_CASE("nobody forms anew for a newcomer once a node is done") {
    Formed job(group_of_between(1, 2));
    job.done(1);
    job.is_lost(1);
    job.joins(2);
    CHECK(job.heard<Parked>(2) == Parked{});
    CHECK(job.silent(0));
    job.done(0);
    CHECK(job.heard<Verdict>(2).exit_code == 0);
}

// --- unfit nodes --------------------------------------------------------------------------------

TEST_CASE(
    "a spare replaces an unfit node, once nothing of it can run; the node itself ends with 71") {
    Formed job = with_a_parked_spare(2, 1);
    job.fails(1, of_kind(CauseKind::node_unfit, 71));
    job.passes(200ms);
    (void)job.heard<StopRound>(1);
    CHECK(job.heard<Verdict>(1).exit_code == 71);
    CHECK(job.heard<StopRound>(0).restarts_used == 1);
    job.survivors_are_clear({0});
    CHECK(job.round() == 1);
    job.is_lost(1, 3s);
    job.passes(3s);
    CHECK(job.round() == 2);
    CHECK(job.grant_of(2).node_rank == 1);
}

TEST_CASE("a node becomes unfit while the others stop already: the spare takes its place") {
    Formed job = with_a_parked_spare(2, 1);
    job.fails(0, exited(1));
    job.passes(200ms);
    job.fails(1, of_kind(CauseKind::node_unfit, 71));
    job.survivors_are_clear({0});
    job.says_goodbye(1);
    CHECK(job.round() == 2);
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("a keeper is lost: its workers died with it, and the spare starts at once") {
    Formed job = with_a_parked_spare(2, 1);
    job.fails(1, of_kind(CauseKind::keeper_lost, 71));
    job.says_goodbye(1);
    job.passes(200ms);
    job.survivors_are_clear({0});
    CHECK(job.round() == 2);
    CHECK(job.grant_of(2).node_rank == 1);
}

TEST_CASE("without a spare an unfit node ends the job with 71, though restarts are left") {
    Formed job(group_of(2, 3));
    job.fails(0, exited(4));
    job.fails(1, of_kind(CauseKind::node_unfit, 71));
    job.passes(200ms);
    CHECK_FALSE(job.heard<StopRound>(0).will_restart);
    job.survivors_are_clear({0});
    CHECK(job.heard<Verdict>(0).has_cause);
}
