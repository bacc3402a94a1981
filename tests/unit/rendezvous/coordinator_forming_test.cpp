// How a group of nodes comes together.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

TEST_CASE("RDZV-5 a fixed group waits for all and says who is missing, at least every 30 s") {
    JobStory job(group_of(4));
    job.joins(0);
    job.passes(1s);
    job.joins(1);
    job.passes(44s);
    CHECK(job.notices(0) ==
          "2 of 4 nodes joined; missing since 5 s | 2 of 4 nodes joined; missing since 25 s | "
          "2 of 4 nodes joined; missing since 45 s");
    CHECK(job.round() == 0);
}

TEST_CASE(
    "RDZV-5 the smallest group starts when the last call ends, counted from when it was met") {
    JobStory job(group_of_between(2, 4));
    job.joins(0);
    job.passes(1min);
    job.joins(1);
    job.passes(29s);
    CHECK(job.round() == 0);
    CHECK(job.notices(1).find("starting in") != std::string::npos);
    job.passes(1s);
    CHECK(job.round() == 1);
    CHECK(job.grant_of(0).node_count == 2);
}

TEST_CASE("the largest group starts at once") {
    JobStory job(group_of_between(2, 3));
    job.form();
    CHECK(job.heard<RoundGranted>(0).node_count == 3);
}

TEST_CASE("the last call ends when there are too few nodes again, and starts anew") {
    JobStory job(group_of_between(2, 4));
    job.joins(0);
    job.joins(1);
    job.passes(20s);
    job.says(1, Leave{stopped_by(15)});
    job.passes(20s);
    CHECK(job.round() == 0);
    job.joins(2);
    job.passes(29s);
    CHECK(job.round() == 0);
    job.passes(1s);
    CHECK(job.grant_of(0).node_count == 2);
}

TEST_CASE("a group that does not form in time ends with 75 and says who came") {
    JobStory job(group_of(4));
    job.joins(0);
    job.joins(1);
    job.passes(10min);
    (void)job.notices(0);
    (void)job.notices(1);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 75);
    CHECK(verdict.cause.kind == CauseKind::never_formed);
    CHECK(verdict.cause.words == "2 of 4 nodes joined within 600 s: n0, n1");
    CHECK(job.heard<Verdict>(1) == verdict);
    CHECK_FALSE(job.coordinator().next_deadline().has_value());
}

TEST_CASE("RDZV-6 those who wait are told who left, and keep waiting") {
    JobStory job(group_of(3));
    job.joins(0);
    job.joins(1);
    job.says(0, Leave{stopped_by(2)});
    CHECK(job.heard<Verdict>(0).exit_code == 130);
    job.passes(500ms);
    CHECK(job.notices(1) == "n0 left (SIGINT)");
    job.says_goodbye(0);
    job.passes(3s);
    CHECK(job.silent(1));
    job.joins(2);
    job.joins(3);
    CHECK(job.heard<RoundGranted>(1).node_count == 3);
}

TEST_CASE("a node that is lost while the group forms is not waited for as a member") {
    JobStory job(group_of(2));
    job.joins(0);
    job.is_lost(0);
    job.joins(1);
    CHECK(job.round() == 0);
    CHECK(job.notices(1).empty());
    job.passes(1s);
    CHECK(job.notices(1) == "node n0 was lost: killed");
    job.joins(2);
    CHECK(job.round() == 1);
}

TEST_CASE("a silent node is not granted a round; when it is back, it is") {
    JobStory job(group_of(2));
    job.joins(0);
    job.falls_silent(0);
    job.joins(1);
    CHECK(job.round() == 0);
    job.is_back(0);
    CHECK(job.round() == 1);
}

TEST_CASE("RDZV-4 a node rank is free again when its holder is lost") {
    JobStory job(group_of(3));
    Join first = join_of("n0");
    first.wished_node_rank = 0;
    job.says(0, first);
    job.says(1, first);
    CHECK(job.heard<Verdict>(1).cause.words == "node rank 0 is already held by n0");
    job.is_lost(0);
    job.says(2, first);
    job.passes(1s);
    (void)job.notices(2);
    CHECK(job.silent(2));
    CHECK(job.coordinator().knows(102));
}

TEST_CASE("RDZV-4 a node that comes for the rank of a silent one waits for its fate") {
    Join offer = join_of("n1");
    offer.wished_node_rank = 1;
    JobStory job(group_of(2, 1));
    job.joins(0);
    job.says(1, offer);
    job.forget_what_was_said();
    job.falls_silent(1);
    job.says(2, offer);
    CHECK(job.heard<Parked>(2) == Parked{});
    SECTION("it is back: refused, and nothing else happens") {
        job.is_back(1);
        const auto verdict = job.heard<Verdict>(2);
        CHECK(verdict.exit_code == 75);
        CHECK(verdict.cause.words == "node rank 1 is already held by n1");
        CHECK(job.round() == 1);
    }
    SECTION("it is lost: the newcomer has its place in the next round") {
        job.is_lost(1);
        job.passes(200ms);
        job.survivors_are_clear({0});
        CHECK(job.grant_of(2).round == 2);
        CHECK(job.grant_of(2).node_rank == 1);
        CHECK(job.grant_of(0).node_rank == 0);
    }
}

TEST_CASE("more nodes than the group needs are spares, as many as are allowed") {
    JobStory job(with_spares(group_of(2), 1));
    job.form();
    job.joins(2);
    CHECK(job.heard<Parked>(2) == Parked{});
    job.joins(3);
    const auto refused = job.heard<Verdict>(3);
    CHECK(refused.exit_code == 75);
    CHECK(refused.cause.words == "the group of 2 nodes is complete");
    CHECK(job.round() == 1);
}

TEST_CASE("a scheduler's index of a spare is no wish too high") {
    JobStory job(with_spares(group_of(2), 1));
    Join last = join_of("n2"), beyond = join_of("n3");
    last.wished_node_rank = 2;
    beyond.wished_node_rank = 3;
    job.says(3, beyond);
    CHECK(job.heard<Verdict>(3).cause.words ==
          "node rank 3 does not exist in a group of 2 nodes and 1 spares");
    job.says(2, last);
    CHECK(job.coordinator().knows(102));
}

TEST_CASE("a spare is told the verdict like everybody else") {
    JobStory job(with_spares(group_of(1), 1));
    job.form();
    job.joins(1);
    job.forget_what_was_said();
    job.done(0);
    CHECK(job.heard<Verdict>(0).exit_code == 0);
    CHECK(job.heard<Verdict>(1).exit_code == 0);
}

TEST_CASE("a spare comes and goes without a word to the round") {
    JobStory job(with_spares(group_of(2), 1));
    job.form();
    job.joins(2);
    job.forget_what_was_said();
    job.says(2, Leave{stopped_by(15)});
    CHECK(job.heard<Verdict>(2).exit_code == 143);
    job.joins(3);
    CHECK(job.heard<Parked>(3) == Parked{});
    job.is_lost(3);
    CHECK(job.round() == 1);
    job.done(0);
    job.done(1);
    (void)job.notices(0);
    CHECK(job.heard<Verdict>(0).exit_code == 0);
}

TEST_CASE("the digest is the same on all nodes of a round and another one in each round") {
    JobStory job(group_of(3, 2));
    job.form();
    for (int node : {0, 1}) {
        job.fails(node, exited(1));
        job.passes(200ms);
        job.all_gone();
        job.passes(1s);
    }
    CHECK(job.round() == 3);
    CHECK(job.digests_agree());
    CHECK(job.coordinator().digest() == job.grant_of(2).digest);
}

TEST_CASE("RDZV-14 the endpoint's host is node rank 0 and the master") {
    JobStory job(group_of(3));
    Join host = join_of("n8");
    host.hosts_endpoint = true;
    job.joins(0);
    job.joins(1);
    job.says(2, host);
    CHECK(job.grant_of(2).node_rank == 0);
    CHECK(job.grant_of(0).master_addr == "10.9.0.8");
}

TEST_CASE("a status page sees rounds, nodes and what they do") {
    JobStory job(with_spares(group_of(2, 1), 1));
    CHECK(job.coordinator().state_name() == "forming");
    job.form();
    job.joins(2);
    job.done(0);
    job.falls_silent(1);
    const Coordinator& coordinator = job.coordinator();
    CHECK(coordinator.state_name() == "running");
    CHECK(coordinator.world_size() == 4);
    CHECK(coordinator.is_closing());
    CHECK(coordinator.round_of(100) == 1);
    CHECK(coordinator.round_of(102) == 0);
    std::string states;
    for (const MemberStatus& member : coordinator.members()) {
        states += member.name + ":" + std::to_string(member.node_rank) + ":" + member.state + " ";
    }
    CHECK(states == "n0:0:done n1:1:silent n2:-1:spare ");
}
