// Nodes that are told to stop, and nodes that come while the job runs.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

namespace {

struct Formed : JobStory {
    explicit Formed(JobRules rules) : JobStory(std::move(rules)) {
        form();
        forget_what_was_said();
    }
    // `node` comes, and the group forms anew for it.
    void grows_by(int node, std::initializer_list<int> members) {
        joins(node);
        survivors_are_clear(members);
    }
};

}  // namespace

TEST_CASE("RDZV-7 an announced leave with enough nodes left is not charged") {
    Formed job(group_of_between(2, 3));
    job.says(1, Leave{stopped_by(15)});
    job.passes(200ms);
    const auto stop = job.heard<StopRound>(0);
    CHECK(stop.cause.kind == CauseKind::node_left);
    CHECK(stop.cause.words == "node n1 left (SIGTERM)");
    CHECK(stop.will_restart);
    CHECK(stop.restarts_used == 0);
    (void)job.heard<StopRound>(1);
    job.survivors_are_clear({0});
    CHECK(job.silent(1));
    job.survivors_are_clear({1});
    const auto own = job.heard<Verdict>(1);
    CHECK(own.exit_code == 143);
    job.survivors_are_clear({2});
    CHECK(job.round() == 2);
    CHECK(job.grant_of(2).node_rank == 1);
    job.says_goodbye(1);
    CHECK(job.round() == 2);
    job.forget_what_was_said();
    job.done(0);
    job.done(2);
    CHECK(job.heard<Verdict>(0).exit_code == 0);
    CHECK(job.silent(1));
}

TEST_CASE("a spare takes the place of a node that leaves, without a charge") {
    Formed job(with_spares(group_of(2), 1));
    job.joins(2);
    job.says(1, Leave{stopped_by(15)});
    job.passes(200ms);
    job.survivors_are_clear({0, 1});
    CHECK(job.grant_of(2).node_rank == 1);
    CHECK(job.coordinator().restarts_used() == 0);
}

TEST_CASE("SLURM-6 all nodes are told to stop, in one instant or one after the other: 143") {
    const auto apart = GENERATE(0ms, 40ms, 500ms);
    const int restarts = GENERATE(0, 3);
    Formed job(group_of_between(2, 4, restarts));
    for (int node : {2, 0, 3, 1}) {
        job.says(node, Leave{stopped_by(15)});
        job.passes(apart);
    }
    job.passes(200ms);
    job.all_gone();
    for (int node : {0, 1, 2, 3}) {
        (void)job.notices(node);
        (void)job.heard<StopRound>(node);
        CHECK(job.heard<Verdict>(node).exit_code == 143);
    }
    CHECK(job.coordinator().is_over());
    CHECK(job.coordinator().restarts_used() == 0);
}

TEST_CASE("SLURM-6 workers that end because their node is told to stop are not the cause") {
    Formed job(group_of_between(1, 2, 1));
    job.fails(1, exited(1, 2));
    job.passes(100ms);
    job.says(1, Leave{stopped_by(15)});
    job.passes(100ms);
    CHECK(job.heard<StopRound>(0).cause.kind == CauseKind::node_left);
    job.survivors_are_clear({0, 1});
    CHECK(job.round() == 2);
    CHECK(job.coordinator().restarts_used() == 0);
}

TEST_CASE("a failure elsewhere that is older than a leave is the cause, and is charged") {
    Formed job(group_of_between(1, 2, 1));
    job.says(1, Leave{stopped_by(15)});
    job.fails(0, exited(6, 0, 1s));
    job.passes(200ms);
    CHECK(job.heard<StopRound>(0).cause.failure.status.value == 6);
    job.survivors_are_clear({0, 1});
    (void)job.heard<StopRound>(1);
    CHECK(job.heard<Verdict>(1).exit_code == 143);
    CHECK(job.grant_of(0).round == 2);
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("a node that leaves while a restart is prepared is left out of it") {
    Formed job(group_of_between(1, 3, 1));
    job.fails(0, exited(1));
    job.passes(1s);
    job.says(2, Leave{stopped_by(15)});
    job.survivors_are_clear({0, 1, 2});
    CHECK(job.round() == 2);
    CHECK(job.grant_of(0).node_count == 2);
}

TEST_CASE("a node that is done and leaves does not disturb the others, where they are enough") {
    Formed job(group_of_between(1, 2));
    job.done(1);
    job.says(1, Leave{stopped_by(15)});
    CHECK(job.heard<Verdict>(1).exit_code == 143);
    CHECK(job.silent(0));
    job.done(0);
    CHECK(job.heard<Verdict>(0).exit_code == 0);
}

TEST_CASE("a goodbye without a word before ends a group that cannot do without") {
    Formed job(group_of(2, 3));
    job.says_goodbye(1);
    CHECK(job.heard<StopRound>(0).cause.words == "node n1 left");
    job.survivors_are_clear({0});
    CHECK(job.heard<Verdict>(0).exit_code == 75);
}

// --- newcomers ----------------------------------------------------------------------------------

TEST_CASE("RDZV-5 a latecomer is admitted by forming anew, which is not charged") {
    JobStory job(group_of_between(2, 4));
    job.joins(0);
    job.joins(1);
    job.passes(30s);
    job.forget_what_was_said();
    job.passes(15s);
    job.joins(2);
    const auto stop = job.heard<StopRound>(0);
    CHECK(stop.cause.kind == CauseKind::membership);
    CHECK(stop.cause.words == "node n2 joined");
    CHECK(stop.will_restart);
    CHECK(stop.restarts_used == 0);
    CHECK(job.silent(2));
    job.joins(3);
    CHECK(job.heard<Notice>(3).words == "a round is ending; this node waits for the next one");
    job.survivors_are_clear({0, 1});
    CHECK(job.round() == 2);
    CHECK(job.grant_of(3).node_count == 4);
    CHECK(job.grant_of(3).restart_count == 1);
    CHECK(job.grant_of(0).node_rank == 0);
}

TEST_CASE("nodes that trickle in do not stop the others each time, and are never turned away") {
    JobStory job(group_of_between(1, 9));
    job.joins(0);
    job.passes(30s);
    for (int node = 1; node <= 3; ++node) {
        job.joins(node);
        for (int member = 0; member < node; ++member) job.says(member, RoundGone{node});
        CHECK(job.round() == node + 1);
    }
    job.joins(4);
    job.joins(5);
    CHECK(job.round() == 4);
    CHECK(job.coordinator().state_name() == "running");
    job.passes(9s);
    CHECK(job.coordinator().state_name() == "running");
    job.passes(1s);
    job.survivors_are_clear({0, 1, 2, 3});
    CHECK(job.round() == 5);
    CHECK(job.grant_of(5).node_count == 6);
}

TEST_CASE("a committed step lets those who wait take part at once") {
    JobStory job(group_of_between(1, 9));
    job.joins(0);
    job.passes(30s);
    for (int node = 1; node <= 3; ++node) {
        job.joins(node);
        for (int member = 0; member < node; ++member) job.says(member, RoundGone{node});
    }
    job.joins(4);
    CHECK(job.coordinator().state_name() == "running");
    job.says(0, StepCommitted{4});
    job.survivors_are_clear({0, 1, 2, 3});
    CHECK(job.grant_of(4).round == 5);
}

TEST_CASE("RST-3 a node that leaves and comes back again and again ends the job with 75") {
    JobStory job(group_of_between(1, 2));
    job.joins(0);
    job.joins(1);
    int node = 1;
    for (int i = 0; i < 10 && !job.coordinator().is_over(); ++i) {
        job.says(node, Leave{stopped_by(15)});
        job.passes(200ms);
        job.survivors_are_clear({0, node});
        Join again = join_of("n1");
        job.says(++node, again);
        job.survivors_are_clear({0});
    }
    CHECK(job.coordinator().is_over());
    CHECK(job.round() == 4);
    job.forget_what_was_said();
    job.joins(9);
    const auto verdict = job.heard<Verdict>(9);
    CHECK(verdict.exit_code == 75);
    CHECK(verdict.cause.words.find("formed anew 3 times") != std::string::npos);
    CHECK(verdict.restarts_used == 0);
}

TEST_CASE("a node that comes back to a healthy job each time is welcome each time") {
    JobStory job(group_of_between(1, 2));
    job.joins(0);
    job.joins(1);
    int node = 1;
    for (int i = 0; i < 10; ++i) {
        job.passes(11s);
        job.says(node, Leave{stopped_by(15)});
        job.passes(200ms);
        job.survivors_are_clear({0, node});
        job.passes(11s);
        job.says(++node, join_of("n1"));
        job.survivors_are_clear({0});
    }
    CHECK(job.round() == 21);
    CHECK(job.coordinator().state_name() == "running");
}

TEST_CASE("a node that is lost while the group forms anew is charged after all") {
    JobStory job(group_of_between(1, 4, 1));
    for (int node : {0, 1, 2}) job.joins(node);
    job.passes(30s);
    job.joins(3);
    job.is_lost(2);
    job.survivors_are_clear({0, 1});
    CHECK(job.round() == 2);
    CHECK(job.coordinator().restarts_used() == 1);
}

TEST_CASE("a node that is lost while the group forms anew ends the job where no restart is left") {
    JobStory job(group_of_between(1, 4));
    for (int node : {0, 1, 2}) job.joins(node);
    job.passes(30s);
    job.joins(3);
    job.is_lost(2);
    job.forget_what_was_said();
    job.survivors_are_clear({0, 1});
    CHECK(job.heard<Verdict>(0).cause.words == "node n2 was lost: killed");
    CHECK(job.heard<Verdict>(3).exit_code == 75);
}
