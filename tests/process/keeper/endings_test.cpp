#include "fake_agent.hpp"
#include "launcher/keeper/proc.hpp"
#include "tests/support/catch.hpp"

#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

using namespace ddrun::launcher::keeper;

namespace {

constexpr const char* forever = "read -r x < /dev/zero";  // never reaches a line end; forks nothing

bool holds(const std::vector<pid_t>& pids, pid_t pid) {
    return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

}  // namespace

TEST_CASE("signals reach the process groups of the workers that are meant") {
    FakeAgent agent;
    for (int rank = 0; rank < 3; ++rank) {
        agent.spawn_shell(rank,
                          "trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.01; done");
    }
    for (int rank = 0; rank < 3; ++rank) agent.await_output(rank, "ready");
    agent.send(Signal{1, SIGUSR1, {1}});
    CHECK(agent.expect<Exited>().local_rank == 1);
    CHECK(agent.output(1).find("got") != std::string::npos);
    agent.send(Signal{2, SIGKILL, {}});  // another round: nobody is meant
    agent.send(Signal{1, SIGUSR1, {}});
    CHECK(agent.expect<Exited>().wait_status == 0);
    CHECK(agent.expect<Exited>().wait_status == 0);
}

TEST_CASE("a signal reaches a worker's children too") {
    FakeAgent agent;
    agent.spawn_shell(0, "trap '' TERM; sleep 999 & echo ready; wait $!; echo child $?");
    // The child inherits the ignored TERM; KILL of the group would end both, INT only reaches the
    // shell.
    agent.await_output(0, "ready");
    agent.send(Signal{1, SIGUSR2, {0}});
    CHECK(WTERMSIG(agent.expect<Exited>().wait_status) == SIGUSR2);
    CHECK(eventually([&] { return living_with_mark(agent.mark()).empty(); }));
}

TEST_CASE("a worker that has only just been forked gets its signal") {
    FakeAgent agent;
    for (int i = 0; i < 50; ++i) {
        agent.spawn_shell(i, forever);
        agent.send(Signal{1, SIGTERM, {i}});
        const auto exited = agent.expect<Exited>(5s);
        CHECK(WIFSIGNALED(exited.wait_status));
        CHECK(WTERMSIG(exited.wait_status) == SIGTERM);
    }
}

TEST_CASE("a round with nothing left is clear at once") {
    FakeAgent agent;
    agent.spawn(0, {"/bin/true"});
    agent.expect<Exited>();
    for (int i = 0; i < 100; ++i) {
        agent.send(KillRound{1});
        agent.expect<RoundClear>(500ms);
    }
}

TEST_CASE(
    "LIFE-2: workers that ignore TERM, helpers in their session, in others, and double-forked") {
    FakeAgent agent;
    agent.spawn_shell(0, std::string("trap '' TERM INT HUP; echo ready; ") + forever);
    agent.spawn_shell(1, std::string("sleep 999 & (setsid sleep 999 &); echo ready; ") + forever);
    agent.spawn_shell(2, std::string("(setsid sh -c 'setsid env -i sleep 998 & sleep 999' &) ; "
                                     "echo ready; exit 1"));
    for (int rank = 0; rank < 3; ++rank) agent.await_output(rank, "ready");
    agent.send(Signal{1, SIGTERM, {}});
    CHECK(agent.expect<Exited>().local_rank >= 1);
    CHECK(agent.expect<Exited>().local_rank >= 1);
    agent.send(KillRound{1});
    CHECK(WTERMSIG(agent.expect<Exited>().wait_status) == SIGKILL);
    agent.expect<RoundClear>(5s);
    CHECK(living_with_mark(agent.mark()).empty());
    CHECK(children_of(agent.keeper()).empty());
}

TEST_CASE("a bomb that keeps forking is ended") {
    FakeAgent agent;
    // Each process of the chain forks its successor and goes; three chains of bounded length.
    const std::string bomb =
        "bomb() { n=$1; [ $n -gt 0 ] || exec sleep 999; (bomb $((n-1)) &); (exec sleep 999 &); }; "
        "echo ready; bomb 70; sleep 999";
    for (int rank = 0; rank < 3; ++rank) agent.spawn_shell(rank, bomb);
    for (int rank = 0; rank < 3; ++rank) agent.await_output(rank, "ready");
    agent.send(KillRound{1});
    agent.expect<RoundClear>(20s);
    CHECK(living_with_mark(agent.mark()).empty());
}

TEST_CASE("a tree as deep as 100 is ended") {
    FakeAgent agent;
    agent.spawn_shell(0,
                      "deep() { [ $1 -gt 0 ] || { echo ready; exec sleep 999; }; "
                      "(deep $(($1-1)); :); }; deep 100; :");
    agent.await_output(0, "ready");
    agent.send(KillRound{1});
    agent.expect<RoundClear>(5s);
    CHECK(living_with_mark(agent.mark()).empty());
}

TEST_CASE("helpers may end by themselves when the agent grants it") {
    FakeAgent agent;
    // The helper sees the worker's end on its stdin and then tidies up, as Python's resource
    // tracker does.
    const std::string script =
        "mkfifo $F; sh -c 'read -r x < $F; sleep 0.05; echo tidied' & "
        "exec 3> $F; rm $F; echo ready; ";
    SpawnChoices choices;
    choices.extra["F"] = "/tmp/keeper-fifo-" + agent.mark();
    agent.spawn_shell(0, script + forever, choices);
    agent.await_output(0, "ready");
    agent.send(KillRound{1, 5000});
    agent.expect<RoundClear>(4s);
    CHECK(agent.output(0).find("tidied") != std::string::npos);

    choices.round = 2;
    choices.extra["F"] += "b";
    agent.spawn_shell(0, "trap '' TERM; sleep 999 & echo ready; exec sleep 998", choices);
    agent.await_output(0, "ready");
    agent.send(KillRound{2, 50});
    agent.expect<RoundClear>(4s);
    CHECK(living_with_mark(agent.mark()).empty());
}

TEST_CASE("a spawn while the round is being ended is refused") {
    FakeAgent agent;
    agent.spawn_shell(0, forever);
    const pid_t held = agent.started(0);
    REQUIRE(::ptrace(PTRACE_SEIZE, held, nullptr, nullptr) == 0);  // the round cannot end
    agent.send(KillRound{1});
    agent.spawn_shell(1, "exit 0");
    CHECK(agent.expect<NotSpawned>().stage == "fork");
    REQUIRE(::waitpid(held, nullptr, 0) == held);
    agent.expect<RoundClear>();
    agent.expect<Exited>();
    agent.spawn_shell(1, "exit 0");
    CHECK(agent.expect<Exited>().wait_status == 0);
}

TEST_CASE(
    "an ended worker's leftovers are named and killed, living workers' trees are not touched") {
    WorkerDefaults defaults;
    defaults.leftover_grace_ms = 50;
    FakeAgent agent(defaults);
    agent.spawn_shell(0, "sleep 997 & (setsid sleep 999 &); echo ready; exit 0");
    agent.spawn_shell(1, std::string("(setsid sleep 998 &); sleep 996 & echo ready; ") + forever);
    agent.await_output(0, "ready");
    agent.await_output(1, "ready");
    agent.expect<Exited>();
    agent.send(CleanUp{1, 0});
    const auto left = agent.expect<LeftBehind>();
    CHECK(left.local_rank == 0);
    REQUIRE(left.processes.size() == 2);
    std::vector<std::string> commands = {left.processes[0].second, left.processes[1].second};
    std::sort(commands.begin(), commands.end());
    CHECK(commands == std::vector<std::string>{"sleep 997", "sleep 999"});
    for (const auto& [pid, command] : left.processes) {
        CHECK(eventually([pid = pid] { return !is_alive(pid); }));
    }
    // Rank 1, its helper and its daemon, which the keeper has adopted by now.
    CHECK(living_with_mark(agent.mark()).size() == 3);
    agent.send(KillRound{1});
    agent.expect<RoundClear>();
    CHECK(living_with_mark(agent.mark()).empty());
}

TEST_CASE("nothing left behind, or what ends by itself in time, is not reported") {
    WorkerDefaults defaults;
    defaults.leftover_grace_ms = 5000;
    FakeAgent agent(defaults);
    agent.spawn_shell(0, "exit 0");
    agent.spawn_shell(1, "sleep 0.1 & exit 0");
    agent.expect<Exited>();
    agent.expect<Exited>();
    agent.send(CleanUp{1, 0});
    agent.send(CleanUp{1, 1});
    agent.send(KillRound{1});  // no worker lives, so it waits for the clean-up
    agent.expect<RoundClear>(4s);
    CHECK_FALSE(agent.comes<LeftBehind>(0ms));
}

TEST_CASE("leftovers of the last worker are named although the round ends right behind") {
    WorkerDefaults defaults;
    defaults.leftover_grace_ms = 50;
    FakeAgent agent(defaults);
    agent.spawn_shell(0, "sleep 999 & exit 0");
    agent.expect<Exited>();
    agent.send(CleanUp{1, 0});
    agent.send(KillRound{1});
    agent.expect<RoundClear>();
    CHECK(agent.expect<LeftBehind>(0ms).processes.size() == 1);
}

TEST_CASE("a process that outlives SIGKILL is named, and nothing waits for it") {
    WorkerDefaults defaults;
    defaults.stuck_after_ms = 100;
    FakeAgent agent(defaults);
    agent.spawn_shell(0, forever);
    agent.spawn_shell(1, forever);
    const pid_t held = agent.started(1);
    const pid_t other = agent.started(0);
    // Whoever traces a process holds its death back from its parent.
    REQUIRE(::ptrace(PTRACE_SEIZE, held, nullptr, nullptr) == 0);
    agent.send(KillRound{1});
    const auto stuck = agent.expect<Stuck>();
    CHECK(stuck.pid == held);
    CHECK(stuck.local_rank == 1);
    CHECK(stuck.held_by == "traced by pid " + std::to_string(::getpid()));
    CHECK(agent.expect<Exited>().pid == other);
    CHECK_FALSE(agent.comes<RoundClear>(0ms));
    agent.send(Inspect{1, 1});
    CHECK(agent.expect<Inspected>(1s).words.find("not yet reaped") != std::string::npos);
    REQUIRE(::waitpid(held, nullptr, 0) == held);  // the tracer lets go
    CHECK(agent.expect<Exited>().pid == held);
    agent.expect<RoundClear>();
    CHECK_FALSE(agent.comes<Stuck>(0ms));
}

TEST_CASE("a frozen process outlives SIGKILL until it is thawed") {
    const std::filesystem::path group = "/sys/fs/cgroup/freezer/keeper-test-" + new_mark();
    std::error_code refused;
    if (!std::filesystem::create_directory(group, refused)) {
        WARN("skipped: no freezer cgroup can be made (" << refused.message() << ")");
        return;
    }
    {
        WorkerDefaults defaults;
        defaults.stuck_after_ms = 100;
        FakeAgent agent(defaults);
        agent.spawn_shell(0, forever);
        const pid_t worker = agent.started(0);
        std::ofstream(group / "cgroup.procs") << worker;
        std::ofstream(group / "freezer.state") << "FROZEN";
        agent.send(KillRound{1});
        const auto stuck = agent.expect<Stuck>();
        CHECK(stuck.pid == worker);
        CHECK(stuck.command.find("/bin/sh -c") == 0);
        CHECK_FALSE(stuck.held_by.empty());
        std::ofstream(group / "freezer.state") << "THAWED";
        CHECK(WTERMSIG(agent.expect<Exited>().wait_status) == SIGKILL);
        agent.expect<RoundClear>();
    }
    CHECK(eventually([&] { return std::filesystem::remove(group, refused); }));
}

TEST_CASE("a worker stopped by somebody else is told, and its continuing") {
    FakeAgent agent;
    agent.spawn_shell(0, forever);
    const pid_t worker = agent.started(0);
    ::kill(worker, SIGSTOP);
    CHECK(agent.expect<StoppedOrContinued>().stopped);
    ::kill(worker, SIGCONT);
    CHECK_FALSE(agent.expect<StoppedOrContinued>().stopped);
}

TEST_CASE("Suspend freezes and thaws whole trees and is not reported as the workers' own stops") {
    FakeAgent agent;
    agent.spawn_shell(0, std::string("(setsid sleep 999 &); sleep 998 & echo ready; ") + forever);
    agent.await_output(0, "ready");
    REQUIRE(eventually([&] { return living_with_mark(agent.mark()).size() == 3; }));
    const auto all = living_with_mark(agent.mark());
    const auto all_in = [&](char state) {
        return eventually([&] {
            return std::all_of(all.begin(), all.end(), [&](pid_t pid) {
                return (read_process(pid)->state == 'T') == (state == 'T');
            });
        });
    };
    agent.send(Suspend{true});
    CHECK(all_in('T'));
    agent.send(Suspend{false});
    CHECK(all_in('S'));
    agent.send(Inspect{1, 0});  // answered after whatever the stops caused
    agent.expect<Inspected>();
    CHECK_FALSE(agent.comes<StoppedOrContinued>(20ms));
}

TEST_CASE("a suspended tree can be killed") {
    FakeAgent agent;
    agent.spawn_shell(0, std::string("(setsid sleep 999 &); echo ready; ") + forever);
    agent.await_output(0, "ready");
    agent.send(Suspend{true});
    agent.send(KillRound{1});
    agent.expect<RoundClear>();
    CHECK(living_with_mark(agent.mark()).empty());
}

TEST_CASE("Inspect says where a worker sleeps and what its threads do") {
    FakeAgent agent;
    agent.spawn_shell(0, "echo ready; exec sleep 999");
    agent.await_output(0, "ready");
    const pid_t worker = agent.started(0);
    REQUIRE(eventually([&] { return command_of(worker) == "sleep 999"; }));
    REQUIRE(eventually([&] { return read_process(worker)->state == 'S'; }));
    agent.send(Inspect{1, 0});
    const std::string words = agent.expect<Inspected>().words;
    CHECK(words.find("pid " + std::to_string(worker) +
                     " (/bin/sh -c echo ready; exec sleep 999) is sleeping") == 0);
    agent.send(Inspect{1, 7});
    CHECK(agent.expect<Inspected>().words == "has ended");
}

TEST_CASE("strangers are never touched: other descendants of the agent live on") {
    const pid_t stranger = ::fork();
    if (stranger == 0) {
        ::setpgid(0, 0);
        for (;;) ::pause();
    }
    {
        FakeAgent agent;
        agent.spawn_shell(0, forever);
        agent.started(0);
        agent.send(KillRound{1});
        agent.expect<RoundClear>();
        CHECK_FALSE(holds(living_with_mark(agent.mark()), stranger));
    }
    CHECK(is_alive(stranger));
    ::kill(stranger, SIGKILL);
    ::waitpid(stranger, nullptr, 0);
}

TEST_CASE("a signal to the workers alone spares their helpers") {
    FakeAgent agent;
    agent.spawn_shell(0,
                      "trap 'got=got' USR1; sleep 999 & helper=$!; echo ready; "
                      "while [ -z \"$got\" ]; do sleep 0.01; done; echo $got; "
                      "kill -0 $helper && echo lives; exit 0");
    agent.await_output(0, "ready");
    agent.send(Signal{1, SIGUSR1, {0}, false});
    agent.expect<Exited>();
    agent.send(KillRound{1});
    agent.expect<RoundClear>();
    const std::string output = agent.output(0);
    CHECK(output.find("got") != std::string::npos);
    CHECK(output.find("lives") != std::string::npos);
}

TEST_CASE("helpers have their grace also when the workers ended before the round is killed") {
    FakeAgent agent;
    agent.spawn_shell(0, "(sleep 0.05; echo tidied) & exit 3");
    agent.expect<Exited>();
    agent.send(KillRound{1, 5000});
    agent.expect<RoundClear>(4s);
    CHECK(agent.output(0) == "tidied\n");
}

TEST_CASE("a stop of the trees is answered once they have stopped") {
    FakeAgent agent;
    agent.spawn_shell(0, forever);
    const pid_t worker = agent.started(0);
    agent.send(Suspend{true});
    agent.expect<Suspended>();
    CHECK(eventually([&] { return read_process(worker)->state == 'T'; }));
}

TEST_CASE("RES-6: a fork that the system refuses is told, the workers before it run on") {
    if (::getuid() != 0) {
        WARN("skipped: only root can become a user without processes");
        return;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
        const rlimit processes{6, 6};
        constexpr uid_t nobody = 65534;
        if (::setrlimit(RLIMIT_NPROC, &processes) != 0 || ::setuid(nobody) != 0) ::_exit(2);
        int result = 1;
        try {
            FakeAgent agent;
            for (int rank = 0; rank < 20; ++rank) agent.spawn_shell(rank, forever);
            const auto refused = agent.expect<NotSpawned>();
            agent.expect<Spawned>();
            agent.send(KillRound{1});
            agent.expect<RoundClear>();
            const bool as_told = refused.stage == "fork" && refused.error_number == EAGAIN;
            result = as_told ? 0 : 1;
        } catch (const std::exception&) {
            result = 3;
        }
        ::_exit(result);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}
