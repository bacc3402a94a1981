// Group F: restart policy.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <signal.h>

#include <string>

using namespace ddrun::test;

TEST_CASE("RST-1: max-restarts is exactly that many restarts, each shown") {
    const auto end =
        run(shell(2, "[ $RANK = 0 ] && echo attempt $TORCHELASTIC_RESTART_COUNT && exit 1; sleep 9",
                  {"--max-restarts=2", "--restart-backoff=0"}),
            20s);
    CHECK(end.code == 1);
    CHECK(has(end.output, "attempt 2"));
    CHECK_FALSE(has(end.output, "attempt 3"));
    CHECK(has(end.errors, "attempt 1/2 failed after"));
    CHECK(end.left_nothing);
}

TEST_CASE("-vv says what agent and job are at, whenever that changes; -v does not") {
    const std::string line = "debug decisions: agent: in round, round 2; group running";
    CHECK(has(run(shell(1, "exit 1", {"--max-restarts=1", "-vv"}), 10s).errors, line));
    CHECK_FALSE(has(run(shell(1, "exit 1", {"--max-restarts=1", "-v"}), 10s).errors, "decisions"));
}

TEST_CASE("RST-1: the restart count is the same on every rank") {
    const auto end =
        run(shell(4,
                  "echo count $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
                  "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || { sleep 0.2; [ $RANK != 2 ] || exit 1; "
                  "sleep 9; }",
                  {"--max-restarts=1"}),
            20s);
    CHECK(end.code == 0);
    CHECK(count_of(end.output, "count 1 of 1") == 4);
}

TEST_CASE("RST-1: chosen codes end the job without a restart") {
    const auto end =
        run(shell(2, "echo attempt; exit 7", {"--max-restarts=5", "--no-restart-on=7,9"}), 10s);
    CHECK(end.code == 7);
    CHECK(count_of(end.output, "attempt") <= 2);
}

TEST_CASE("RST-1: identical quick failures can end the job early") {
    const auto end = run(shell(1, "echo attempt; exit 7",
                               {"--max-restarts=9", "--crash-loop=3", "--restart-backoff=0"}),
                         10s);
    CHECK(end.code == 7);
    CHECK(count_of(end.output, "attempt") == 3);
}

TEST_CASE("default: no restart") {
    CHECK(count_of(run(shell(1, "echo attempt; exit 1")).output, "attempt") == 1);
}

TEST_CASE("a stop request during the back-off ends the job at once") {
    Program job(shell(1, "echo attempt; exit 1", {"--max-restarts=9", "--restart-backoff=20s"}));
    REQUIRE(job.wait_until([&] { return count_of(job.output(), "attempt") == 2; }, 10s));
    job.send_signal(SIGTERM);
    CHECK(job.wait(2s) == 143);
}

TEST_CASE("a rank killed again and again is restarted while the budget lasts") {
    Program job(shell(4, "echo up $TORCHELASTIC_RESTART_COUNT $RANK $$; exec sleep 60",
                      {"--max-restarts=3", "--restart-backoff=0"}));
    for (int attempt = 0; attempt <= 3; ++attempt) {
        const std::string line = "up " + std::to_string(attempt) + " 2 ";
        REQUIRE(job.wait_until(
            [&] { return count_of(job.output(), "up " + std::to_string(attempt) + " ") == 4; },
            10s));
        const auto at = job.output().find(line);
        REQUIRE(at != std::string::npos);
        ::kill(std::atoi(job.output().c_str() + at + line.size()), SIGKILL);
    }
    CHECK(job.wait(10s) == 137);
    CHECK(job.leaves_nothing(1s));
}
