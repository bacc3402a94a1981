#include "fake_agent.hpp"
#include "launcher/keeper/proc.hpp"
#include "tests/support/catch.hpp"

#include <sys/wait.h>

#include <csignal>

using namespace ddrun::launcher::keeper;

TEST_CASE("exit 15 and death by SIGTERM are told apart") {
    FakeAgent agent;
    agent.spawn_shell(0, "exit 15");
    agent.spawn_shell(1, "kill -TERM $$");
    const auto first = agent.expect<Exited>();
    const auto second = agent.expect<Exited>();
    const auto& exited = first.local_rank == 0 ? first : second;
    const auto& killed = first.local_rank == 0 ? second : first;
    CHECK(WIFEXITED(exited.wait_status));
    CHECK(WEXITSTATUS(exited.wait_status) == 15);
    CHECK(WIFSIGNALED(killed.wait_status));
    CHECK(WTERMSIG(killed.wait_status) == SIGTERM);
}

TEST_CASE("Spawned comes before Exited and carries the same pid; memory and time are real") {
    FakeAgent agent;
    const auto before = std::chrono::steady_clock::now().time_since_epoch();
    for (int rank = 0; rank < 8; ++rank) agent.spawn(rank, {"/bin/true"});
    std::map<int, pid_t> pids;
    for (int i = 0; i < 8; ++i) {
        const auto spawned = agent.expect<Spawned>();
        pids[spawned.local_rank] = spawned.pid;
    }
    for (int i = 0; i < 8; ++i) {
        const auto exited = agent.expect<Exited>();
        CHECK(exited.wait_status == 0);
        CHECK(exited.pid == pids[exited.local_rank]);
        CHECK(exited.max_rss_kib > 100);
        CHECK(exited.at_ns >= std::chrono::nanoseconds(before).count());
    }
    agent.send(KillRound{1});
    CHECK(agent.expect<RoundClear>(1s).round == 1);
}

TEST_CASE("K8S-1: adopted orphans are reaped at once and never taken for workers") {
    FakeAgent agent;
    agent.spawn_shell(0,
                      "i=0; while [ $i -lt 200 ]; do (:; (sleep 0.01 &) ); i=$((i+1)); done; "
                      "echo made; read -r line < /dev/zero");
    agent.await_output(0, "made");
    const pid_t worker = agent.started(0);
    CHECK(
        eventually([&] { return children_of(agent.keeper()) == std::vector<pid_t>{worker}; }, 2s));
    CHECK_FALSE(agent.comes<Exited>(0ms));
}

TEST_CASE("RES-6: 256 workers") {
    FakeAgent agent;
    for (int rank = 0; rank < 256; ++rank) agent.spawn(rank, {"/bin/true"});
    for (int rank = 0; rank < 256; ++rank) CHECK(agent.expect<Exited>(20s).wait_status == 0);
    agent.send(KillRound{1});
    agent.expect<RoundClear>(1s);
    CHECK(children_of(agent.keeper()).empty());
}
