#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

TEST_CASE("no node is granted a round before all have joined") {
    JobStory job(group_of(3));
    job.says(0, join_of("n0"));
    job.says(1, join_of("n1"));
    job.passes(9min);
    job.says(2, join_of("n2"));
    for (int node : {0, 1, 2}) (void)job.notices(node);
    for (int node : {0, 1, 2}) CHECK(job.heard<RoundGranted>(node).node_rank == node);
}

TEST_CASE("nodes may have different slots; ranks are contiguous and the master is rank 0's node") {
    JobStory job(group_of(3));
    job.says(2, join_of("n7", 3));
    job.says(0, join_of("n10", 1));
    job.says(1, join_of("n2", 2));
    const auto digest = job.coordinator().digest();
    CHECK(job.heard<RoundGranted>(1) == RoundGranted{1, 6, 0, 3, 0, 0, "10.9.0.2", 40000, digest});
    CHECK(job.heard<RoundGranted>(2) == RoundGranted{1, 6, 1, 3, 2, 0, "10.9.0.2", 40000, digest});
    CHECK(job.heard<RoundGranted>(0) == RoundGranted{1, 6, 2, 3, 5, 0, "10.9.0.2", 40000, digest});
}

TEST_CASE("RDZV-4 a node rank that is held is refused, the holder is not touched") {
    JobStory job(group_of(2));
    Join first = join_of("n0"), second = join_of("n1");
    first.wished_node_rank = second.wished_node_rank = 0;
    job.says(0, first);
    job.says(1, second);
    const auto refused = job.heard<Verdict>(1);
    CHECK(refused.exit_code == 75);
    CHECK(refused.cause.words == "node rank 0 is already held by n0");
    job.says(2, join_of("n2"));
    CHECK(job.heard<RoundGranted>(0).node_rank == 0);
    CHECK(job.heard<RoundGranted>(2).node_rank == 1);
    CHECK(job.silent(1));
}

TEST_CASE("RDZV-4 a node too many is refused, the group is not touched") {
    JobStory job(group_of(2));
    job.form();
    job.forget_what_was_said();
    job.says(2, join_of("n2"));
    CHECK(job.heard<Verdict>(2).cause.words == "the group of 2 nodes is complete");
    CHECK(job.silent());
}

TEST_CASE("a node rank beyond the group, or a node without slots, is refused") {
    JobStory job(group_of(2));
    Join beyond = join_of("n0");
    beyond.wished_node_rank = 2;
    job.says(0, beyond);
    CHECK(job.heard<Verdict>(0).cause.words == "node rank 2 does not exist in a group of 2 nodes");
    job.says(1, join_of("n1", 0));
    CHECK(job.heard<Verdict>(1).exit_code == 75);
}

TEST_CASE("RDZV-6 a node that leaves while the group forms is let go, the others keep waiting") {
    JobStory job(group_of(2));
    job.says(0, join_of("n0"));
    job.says(0, Leave{stopped_by(2)});
    CHECK(job.heard<Verdict>(0).exit_code == 130);
    job.says(1, join_of("n1"));
    CHECK(job.silent());
    job.says(2, join_of("n2"));
    CHECK(job.heard<RoundGranted>(1).node_count == 2);
    CHECK(job.silent(0));
}

TEST_CASE("EXIT-5 the oldest failure is the cause, whoever reports first") {
    JobStory job(group_of(2));
    job.form();
    job.forget_what_was_said();
    job.fails(0, exited(1, 0, 5ms));
    job.passes(50ms);
    CHECK(job.silent());
    job.fails(1, exited(3, 2, 70ms));
    job.passes(200ms);
    for (int node : {0, 1}) {
        const auto stop = job.heard<StopRound>(node);
        CHECK(stop.cause.failure.rank == 2);
        CHECK(stop.cause.node_name == "n1");
        CHECK(stop.cause.node_rank == 1);
    }
    job.gone(0);
    CHECK(job.silent());
    job.gone(1);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 3);
    CHECK(job.heard<Verdict>(1) == verdict);
}

TEST_CASE("nodes are told of a failure within the cause window") {
    JobStory job(group_of(2));
    job.form();
    job.forget_what_was_said();
    job.fails(0, exited(1));
    job.passes(199ms);
    CHECK(job.silent());
    job.passes(1ms);
    CHECK(job.heard<StopRound>(1).cause.failure.status.value == 1);
}

TEST_CASE("a consequence is not the cause, though it is older") {
    JobStory job(group_of(2));
    job.form();
    job.forget_what_was_said();
    Cause blames = exited(1, 0, 100ms);
    blames.failure.blamed_rank = 2;
    job.fails(0, blames);
    job.fails(1, killed_by(11, 2, 10ms));
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).cause.failure.rank == 2);
}

TEST_CASE("when every node has ended there is nobody to wait for") {
    JobStory job(group_of(2));
    job.form();
    job.forget_what_was_said();
    job.done(1);
    job.fails(0, exited(1));
    job.gone(0);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 1);
    CHECK(job.heard<Verdict>(0).exit_code == 1);
}

TEST_CASE("RST-4 all nodes restart together, and only when the last one is clear") {
    JobStory job(group_of(2, 1));
    job.form();
    job.forget_what_was_said();
    job.fails(1, exited(4, 2));
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).will_restart);
    CHECK(job.heard<StopRound>(1).will_restart);
    job.gone(1);
    job.passes(1h);
    CHECK(job.silent());
    job.gone(0);
    CHECK(job.heard<RoundGranted>(0).round == 2);
    CHECK(job.heard<RoundGranted>(1).round == 2);
}

TEST_CASE("RDZV-9 a node that is done stays until the verdict and takes part in a later round") {
    JobStory job(group_of(2, 1));
    job.form();
    job.forget_what_was_said();
    job.done(0);
    job.passes(1h);
    CHECK(job.silent());
    job.fails(1, exited(4, 2));
    job.passes(200ms);
    (void)job.heard<StopRound>(0);
    (void)job.heard<StopRound>(1);
    job.gone(1);
    CHECK(job.silent());
    job.gone(0);
    CHECK(job.heard<RoundGranted>(0).round == 2);
    job.forget_what_was_said();
    job.done(0);
    CHECK(job.silent());
    job.done(1);
    CHECK(job.heard<Verdict>(0).exit_code == 0);
    CHECK(job.heard<Verdict>(1).exit_code == 0);
}

TEST_CASE("RST-3 the restart budget is one for the whole job") {
    JobStory job(group_of(3, 2));
    job.form();
    for (int node : {0, 1}) {
        job.fails(node, exited(1 + node, node));
        job.passes(200ms);
        job.all_gone();
        job.passes(1s);
    }
    job.forget_what_was_said();
    job.fails(2, exited(9, 4));
    job.passes(200ms);
    job.forget_what_was_said();
    job.all_gone();
    for (int node : {0, 1, 2}) {
        const auto verdict = job.heard<Verdict>(node);
        CHECK(verdict.exit_code == 9);
        CHECK(verdict.restarts_used == 2);
    }
}

TEST_CASE("an announced leave that cannot be absorbed ends all nodes with its code") {
    JobStory job(group_of(2, 3));
    job.form();
    job.forget_what_was_said();
    job.says(1, Leave{stopped_by(15)});
    CHECK(job.heard<StopRound>(0).cause.node_name == "n1");
    (void)job.heard<StopRound>(1);
    job.all_gone();
    CHECK(job.heard<Verdict>(0).exit_code == 143);
    CHECK(job.heard<Verdict>(1).exit_code == 143);
}

TEST_CASE("an unfit node does not hold up the verdict of the others") {
    JobStory job(group_of(2, 3));
    job.form();
    job.fails(0, exited(1));
    job.passes(200ms);
    job.gone(0);
    job.forget_what_was_said();
    job.fails(1, of_kind(CauseKind::node_unfit));
    CHECK(job.heard<Verdict>(0).exit_code == 71);
    CHECK(job.heard<Verdict>(1).exit_code == 71);
}

TEST_CASE("messages of strangers change nothing") {
    JobStory job(group_of(2));
    job.form();
    job.forget_what_was_said();
    job.fails(7, exited(1));
    job.gone(7);
    job.done(7);
    CHECK(job.silent());
    job.says(7, Leave{stopped_by(15)});
    CHECK(job.heard<Verdict>(7).exit_code == 143);
    CHECK(job.silent());
}

TEST_CASE("joining twice over one connection changes nothing") {
    JobStory job(group_of(2));
    job.says(0, join_of("n0"));
    job.says(0, join_of("n5"));
    CHECK(job.silent());
    job.says(1, join_of("n1"));
    CHECK(job.heard<RoundGranted>(0).world_size == 4);
    CHECK(job.silent(0));
}

TEST_CASE("trouble with a node that crossed the grant ends the round all the same") {
    JobStory job(group_of(2, 3));
    job.form();
    job.forget_what_was_said();
    job.says(0, FailureReport{0, of_kind(CauseKind::spawn_failed, 71)});
    job.passes(200ms);
    CHECK(job.heard<StopRound>(1).cause.exit_code == 71);
    job.all_gone();
    CHECK(job.heard<Verdict>(1).exit_code == 71);
}
