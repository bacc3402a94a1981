#include "rendezvous/core/restart_budget.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

namespace {

constexpr RoundLife short_life{1, 200ms, false};

JobRules with_restarts(int restarts) {
    JobRules rules;
    rules.max_restarts = restarts;
    return rules;
}

}  // namespace

TEST_CASE("without restarts every failure is the last") {
    RestartBudget budget(with_restarts(0));
    const auto decision = budget.decide(exited(1), short_life);
    CHECK_FALSE(decision.restart);
    CHECK(decision.why_not.empty());
    CHECK(budget.used() == 0);
}

TEST_CASE("delays are 0, 1, 2, 4, 8, 16, 30, 30 seconds") {
    RestartBudget budget(with_restarts(8));
    for (const auto delay : {0s, 1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
        CHECK(budget.decide(exited(1), short_life).delay == delay);
    }
    CHECK_FALSE(budget.decide(exited(1), short_life).restart);
    CHECK(budget.used() == 8);
}

TEST_CASE("a backoff of 0 never waits") {
    JobRules rules = with_restarts(100);
    rules.backoff_first = 0s;
    RestartBudget budget(rules);
    for (int i = 0; i < 100; ++i) CHECK(budget.decide(exited(1), short_life).delay == 0s);
}

TEST_CASE("a first delay above the limit is the limit") {
    JobRules rules = with_restarts(3);
    rules.backoff_first = 1min;
    RestartBudget budget(rules);
    (void)budget.decide(exited(1), short_life);
    CHECK(budget.decide(exited(1), short_life).delay == 30s);
}

TEST_CASE("a round that lived 10 s, or committed a step, resets the backoff but not the budget") {
    const auto healthy = GENERATE(RoundLife{4, 10s, false}, RoundLife{4, 1ms, true});
    RestartBudget budget(with_restarts(10));
    for (int i = 0; i < 3; ++i) (void)budget.decide(exited(1), short_life);
    CHECK(budget.decide(exited(1), healthy).delay == 0s);
    CHECK(budget.decide(exited(1), {5, 9999ms, false}).delay == 1s);
    CHECK(budget.used() == 5);
}

TEST_CASE("jitter shortens a delay by at most a fifth and is the same every time") {
    std::set<ddrun::Duration> seen;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        JobRules rules = with_restarts(2);
        rules.jitter_seed = seed;
        RestartBudget budget(rules), again(rules);
        CHECK(budget.decide(exited(1), short_life).delay == 0s);
        (void)again.decide(exited(1), short_life);
        const auto delay = budget.decide(exited(1), short_life).delay;
        CHECK(delay >= 800ms);
        CHECK(delay <= 1s);
        CHECK(again.decide(exited(1), short_life).delay == delay);
        seen.insert(delay);
    }
    CHECK(seen.size() > 20);
}

TEST_CASE("RST-1 listed exit codes end the job at once, and the reason is told") {
    JobRules rules = with_restarts(3);
    rules.no_restart_on = {2, 139};
    RestartBudget budget(rules);
    CHECK(budget.decide(exited(3), short_life).restart);
    CHECK(budget.decide(exited(2), short_life).why_not ==
          "exit code 2 is listed in --no-restart-on");
    CHECK_FALSE(budget.decide(killed_by(11), short_life).restart);
    CHECK(budget.used() == 1);
}

TEST_CASE("a listed 0 does not catch causes that have no exit code") {
    JobRules rules = with_restarts(3);
    rules.no_restart_on = {0};
    RestartBudget budget(rules);
    CHECK(budget.decide(of_kind(CauseKind::hang), short_life).restart);
}

TEST_CASE("RST-1 K identical failures before minimum uptime stop a crash loop") {
    JobRules rules = with_restarts(10);
    rules.crash_loop = 3;
    RestartBudget budget(rules);
    CHECK(budget.decide(exited(1, 0), short_life).restart);
    CHECK(budget.decide(exited(1, 3), short_life).restart);
    const auto third = budget.decide(exited(1, 1), short_life);
    CHECK_FALSE(third.restart);
    CHECK(third.why_not ==
          "3 identical failures in a row, each soon after its start (--crash-loop)");
}

TEST_CASE("another failure, or a healthy round, starts the count of a crash loop afresh") {
    JobRules rules = with_restarts(10);
    rules.crash_loop = 2;
    RestartBudget budget(rules);
    CHECK(budget.decide(exited(1), short_life).restart);
    CHECK(budget.decide(exited(2), short_life).restart);
    CHECK(budget.decide(killed_by(2), short_life).restart);
    CHECK(budget.decide(killed_by(2), {4, 11s, false}).restart);
    CHECK(budget.decide(killed_by(2), short_life).restart);
    CHECK_FALSE(budget.decide(killed_by(2), short_life).restart);
}

TEST_CASE("a worker that asked not to be restarted is not") {
    Cause cause = exited(1);
    cause.failure.never_retry = true;
    RestartBudget budget(with_restarts(3));
    CHECK(budget.decide(cause, short_life).why_not == "the worker asked not to be restarted");
}

TEST_CASE("a charge can be given back") {
    RestartBudget budget(with_restarts(1));
    CHECK(budget.decide(exited(1), short_life).restart);
    budget.take_back();
    CHECK(budget.used() == 0);
    CHECK(budget.decide(exited(1), short_life).restart);
}
