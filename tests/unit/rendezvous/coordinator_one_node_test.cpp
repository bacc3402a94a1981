#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

namespace {

JobRules with_restarts(int restarts) {
    JobRules rules;
    rules.max_restarts = restarts;
    return rules;
}

}  // namespace

TEST_CASE("one node: the round is granted at once") {
    JobStory job;
    job.says(0, join_of("n0", 4));
    const auto grant = job.heard<RoundGranted>(0);
    CHECK(grant == RoundGranted{1, 4, 0, 1, 0, 0, "10.9.0.0", 40000, grant.digest});
    CHECK(job.silent());
    CHECK_FALSE(job.coordinator().next_deadline().has_value());
}

TEST_CASE("one node: all workers exited 0, the verdict is 0") {
    JobStory job;
    job.form();
    job.forget_what_was_said();
    job.done(0);
    CHECK(job.heard<Verdict>(0) == Verdict{});
    CHECK(job.silent());
}

TEST_CASE(
    "one node: a failure stops the round without waiting, the verdict waits for the end of all") {
    JobStory job;
    job.form();
    job.forget_what_was_said();
    job.fails(0, exited(3, 1));
    const auto stop = job.heard<StopRound>(0);
    CHECK(stop.round == 1);
    CHECK(stop.cause.failure.rank == 1);
    CHECK_FALSE(stop.will_restart);
    CHECK(job.silent());
    job.gone(0);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 3);
    CHECK(verdict.has_cause);
    CHECK(verdict.cause.words == "rank 1 exited 3");
    CHECK(verdict.cause.node_name == "n0");
}

TEST_CASE("one node: the first restart comes at once, in the step that reports the end") {
    JobStory job(with_restarts(1));
    job.form();
    job.forget_what_was_said();
    job.fails(0, killed_by(9));
    const auto stop = job.heard<StopRound>(0);
    CHECK(stop.will_restart);
    CHECK(stop.restarts_used == 1);
    CHECK(stop.max_restarts == 1);
    CHECK(stop.restart_delay == 0ms);
    job.gone(0);
    const auto grant = job.heard<RoundGranted>(0);
    CHECK(grant.round == 2);
    CHECK(grant.restart_count == 1);
    CHECK(job.silent());
}

TEST_CASE("a later restart waits for its backoff, counted from the end of the round") {
    JobStory job(with_restarts(2));
    job.form();
    CHECK(job.fail_and_restart(exited(1)) == 0ms);
    job.fails(0, exited(1));
    CHECK(job.heard<StopRound>(0).restart_delay == 1s);
    job.passes(5s);
    CHECK(job.silent());
    job.gone(0);
    job.passes(999ms);
    CHECK(job.silent());
    job.passes(1ms);
    CHECK(job.heard<RoundGranted>(0).round == 3);
}

TEST_CASE("RST-1 exactly max-restarts restarts, then the code of the last failure") {
    JobStory job(with_restarts(2));
    job.form();
    (void)job.fail_and_restart(exited(1));
    (void)job.fail_and_restart(exited(2));
    CHECK(job.round() == 3);
    job.fails(0, exited(7));
    CHECK_FALSE(job.heard<StopRound>(0).will_restart);
    job.gone(0);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 7);
    CHECK(verdict.restarts_used == 2);
    CHECK(verdict.why_no_restart.empty());
}

TEST_CASE("EXIT-6 told to stop: 128 + signal, also when the workers answer with exit 0") {
    JobStory job(with_restarts(5));
    job.form();
    job.forget_what_was_said();
    job.says(0, Leave{stopped_by(15)});
    const auto stop = job.heard<StopRound>(0);
    CHECK_FALSE(stop.will_restart);
    job.done(0);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 143);
    CHECK(verdict.cause.kind == CauseKind::told_to_stop);
    CHECK(verdict.restarts_used == 0);
}

TEST_CASE("a stop that follows a final failure does not change the code") {
    JobStory job;
    job.form();
    job.fails(0, exited(3));
    job.passes(1s);
    job.says(0, Leave{stopped_by(2)});
    job.forget_what_was_said();
    job.gone(0);
    CHECK(job.heard<Verdict>(0).exit_code == 3);
}

TEST_CASE("SLURM-6 a stop in the same instant as the failure is what happened") {
    JobStory job;
    job.form();
    job.fails(0, exited(1));
    job.passes(100ms);
    job.says(0, Leave{stopped_by(15)});
    job.forget_what_was_said();
    job.gone(0);
    CHECK(job.heard<Verdict>(0).exit_code == 143);
}

TEST_CASE("a stop while a restart is being prepared ends the job, and the restart is not counted") {
    JobStory job(with_restarts(3));
    job.form();
    job.fails(0, exited(3));
    job.passes(1s);
    job.says(0, Leave{stopped_by(2)});
    job.forget_what_was_said();
    job.gone(0);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 130);
    CHECK(verdict.restarts_used == 0);
}

TEST_CASE("RDZV-6 a stop during backoff ends the job at once") {
    JobStory job(with_restarts(3));
    job.form();
    (void)job.fail_and_restart(exited(3));
    job.fails(0, exited(3));
    job.gone(0);
    job.forget_what_was_said();
    job.says(0, Leave{stopped_by(15)});
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 143);
    CHECK(verdict.restarts_used == 1);
    CHECK_FALSE(job.coordinator().next_deadline().has_value());
}

TEST_CASE("EXIT-8 a program that cannot be started uses no restart") {
    const auto [code, kind] = GENERATE(table<int, CauseKind>({{127, CauseKind::spawn_failed},
                                                              {126, CauseKind::spawn_failed},
                                                              {71, CauseKind::spawn_failed}}));
    JobStory job(with_restarts(3));
    job.form();
    job.forget_what_was_said();
    job.fails(0, of_kind(kind, code));
    CHECK_FALSE(job.heard<StopRound>(0).will_restart);
    job.gone(0);
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == code);
    CHECK(verdict.restarts_used == 0);
    CHECK_FALSE(verdict.why_no_restart.empty());
}

TEST_CASE("later failures of a round that is being stopped are consequences") {
    JobStory job(with_restarts(3));
    job.form();
    job.fails(0, exited(3, 1));
    job.fails(0, exited(4, 0));
    job.forget_what_was_said();
    job.gone(0);
    CHECK(job.heard<RoundGranted>(0).round == 2);
    job.fails(0, exited(5, 0));
    CHECK(job.heard<StopRound>(0).restarts_used == 2);
}

TEST_CASE("a process that outlives SIGKILL ends the job: no restart beside it") {
    JobStory job(with_restarts(3));
    job.form();
    job.fails(0, exited(3));
    job.forget_what_was_said();
    job.fails(0, of_kind(CauseKind::node_unfit));
    const auto verdict = job.heard<Verdict>(0);
    CHECK(verdict.exit_code == 71);
    CHECK(verdict.cause.kind == CauseKind::node_unfit);
    CHECK(verdict.restarts_used == 0);
}

TEST_CASE("a process that outlives SIGKILL after a final failure keeps that failure's code") {
    JobStory job;
    job.form();
    job.fails(0, exited(3));
    job.forget_what_was_said();
    job.fails(0, of_kind(CauseKind::node_unfit));
    CHECK(job.heard<Verdict>(0).exit_code == 3);
}

TEST_CASE("the keeper is lost during backoff: 71 at once") {
    JobStory job(with_restarts(3));
    job.form();
    (void)job.fail_and_restart(exited(3));
    job.fails(0, exited(3));
    job.gone(0);
    job.forget_what_was_said();
    job.fails(0, of_kind(CauseKind::keeper_lost));
    CHECK(job.heard<Verdict>(0).exit_code == 71);
}

TEST_CASE("a committed step makes the next restart immediate") {
    JobStory job(with_restarts(3));
    job.form();
    CHECK(job.fail_and_restart(exited(1)) == 0ms);
    job.says(0, StepCommitted{job.round()});
    CHECK(job.fail_and_restart(exited(1)) == 0ms);
    CHECK(job.fail_and_restart(exited(1)) == 1s);
}

TEST_CASE("messages of an older round change nothing") {
    JobStory job(with_restarts(3));
    job.form();
    (void)job.fail_and_restart(exited(1));
    const std::string before = job.coordinator().describe();
    job.says(0, FailureReport{1, exited(9)});
    job.says(0, RoundGone{1});
    job.says(0, NodeDone{1});
    job.says(0, StepCommitted{1});
    CHECK(job.silent());
    CHECK(job.coordinator().describe() == before);
}

TEST_CASE("after the verdict nothing more is said but the verdict") {
    JobStory job(with_restarts(1));
    job.form();
    (void)job.fail_and_restart(exited(1));
    job.done(0);
    const auto verdict = job.heard<Verdict>(0);
    job.fails(0, of_kind(CauseKind::keeper_lost));
    job.gone(0);
    job.says(0, Leave{stopped_by(15)});
    job.passes(1h);
    CHECK(job.silent());
    job.says(0, join_of("n0"));
    CHECK(job.heard<Verdict>(0) == verdict);
}

TEST_CASE("a node that ends its round without a word is a bug, not a success") {
    JobStory job;
    job.form();
    job.forget_what_was_said();
    job.gone(0);
    (void)job.heard<StopRound>(0);
    CHECK(job.heard<Verdict>(0).exit_code == 70);
}

TEST_CASE("a description tells state, restarts and nodes") {
    JobStory job(with_restarts(2));
    CHECK(job.coordinator().describe() == "round 0 forming, restarts 0/2");
    job.form();
    CHECK(job.coordinator().describe() == "round 1 running, restarts 0/2, n0");
    job.fails(0, exited(1));
    CHECK(job.coordinator().describe() == "round 1 stopping, restarts 1/2, n0");
}
