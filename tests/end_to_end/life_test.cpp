// Group D: process life cycle and signals.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>
#include <string>

using namespace ddrun::test;

namespace {

bool all_say(Program& job, const std::string& word, std::size_t workers) {
    return job.wait_until([&] { return count_of(job.output(), word) >= workers; }, 10s);
}

pid_t pid_said(const Program& job, const std::string& word) {  // "word PID"
    const auto at = job.output().find(word + " ");
    return at == std::string::npos
               ? -1
               : static_cast<pid_t>(std::atoi(job.output().c_str() + at + word.size() + 1));
}

bool ignores(pid_t pid, int signal) {
    const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
    const auto at = status.find("SigIgn:");
    REQUIRE(at != std::string::npos);
    const auto mask = std::strtoull(status.c_str() + at + 7, nullptr, 16);
    return ((mask >> (signal - 1)) & 1) != 0;
}

}  // namespace

TEST_CASE("LIFE-1: kill -9 of the launcher leaves no worker, whatever workers ignore") {
    Program job(
        shell(4, "trap '' TERM HUP INT; echo ready; sleep 999 & (setsid sleep 999 &); wait"));
    REQUIRE(all_say(job, "ready", 4));
    job.send_signal(SIGKILL);
    CHECK(job.wait(5s) == 137);
    CHECK(job.leaves_nothing(2s));
}

TEST_CASE("LIFE-1: kill -9 at any moment of the start leaves nothing") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    for (int trial = 0; trial < 60; ++trial) {
        Program job(shell(4, "trap '' TERM HUP INT; sleep 999"));
        std::uniform_int_distribution<int> microseconds(0, trial % 2 ? 20000 : 3000);
        ::usleep(static_cast<useconds_t>(microseconds(random)));
        job.send_signal(SIGKILL);
        REQUIRE(job.wait(5s) == 137);
        REQUIRE(job.leaves_nothing(2s));
    }
}

TEST_CASE("LIFE-1: kill -9 of the keeper ends the job in words and leaves nothing") {
    Program job(shell(3, "trap '' TERM; echo parent $PPID; (setsid sleep 999 &); sleep 999"));
    REQUIRE(all_say(job, "parent", 3));
    ::kill(pid_said(job, "parent"), SIGKILL);
    CHECK(job.wait(5s) == 71);
    CHECK(has(job.errors(), "keeper"));
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("LIFE-1: kill -9 of the launcher's whole process group leaves nothing") {
    auto invocation = shell(3, "echo ready; (setsid sleep 999 &); sleep 999");
    invocation.before_exec = [] { ::setpgid(0, 0); };
    Program job(invocation);
    REQUIRE(all_say(job, "ready", 3));
    ::kill(-job.pid(), SIGKILL);
    CHECK(job.wait(5s) == 137);
    CHECK(job.leaves_nothing(2s));
}

TEST_CASE("LIFE-1: pkill -9 ddrun spares the keeper, which leaves nothing") {
    Program job(shell(3, "echo ready; sleep 999 & (setsid sleep 999 &); wait"));
    REQUIRE(all_say(job, "ready", 3));
    for (const auto pid : job.descendants())
        REQUIRE_FALSE(has(read_file("/proc/" + std::to_string(pid) + "/comm"), "ddrun"));
    job.send_signal(SIGKILL);
    CHECK(job.wait(5s) == 137);
    CHECK(job.leaves_nothing(2s));
}

TEST_CASE("LIFE-2: helpers of a failed worker are gone, also in another session") {
    for (const char* last : {"exit 1", "kill -SEGV $$"}) {
        CAPTURE(last);
        const auto end =
            run(shell(2, std::string("sleep 999 & (setsid sleep 999 &); ") + last), 10s);
        CHECK(end.code != 0);
        CHECK(end.seconds < 5);
        CHECK(end.left_nothing);
    }
}

TEST_CASE("LIFE-2: helpers left behind by exit 0 are ended and named once") {
    const auto end = run(shell(2, "[ $RANK = 1 ] && (setsid sleep 999 &); exit 0"), 10s);
    CHECK(end.code == 0);
    CHECK(end.seconds < 5);
    CHECK(has(end.errors, "rank 1"));
    CHECK(has(end.errors, "sleep 999"));
    CHECK(end.left_nothing);
}

TEST_CASE("LIFE-2: no helper of the first attempt lives when the second begins") {
    TemporaryDirectory directory;
    const auto pids = directory.file("pids");
    const auto end =
        run(shell(1,
                  "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then setsid sleep 999 & echo $! > " +
                      pids + "; exit 1; fi; s=$(cut -d' ' -f3 /proc/$(cat " + pids +
                      ")/stat 2>/dev/null); "
                      "[ -z \"$s\" ] || [ \"$s\" = Z ] || echo ALIVE $s",
                  {"--max-restarts=1"}),
            10s);
    CHECK(end.code == 0);
    CHECK_FALSE(has(end.output, "ALIVE"));
    CHECK(end.left_nothing);
}

TEST_CASE("LIFE-4: Ctrl-C twice kills at once") {
    auto invocation = shell(2, "trap '' INT TERM; echo ready; while :; do sleep 1; done");
    invocation.terminal = true;
    Program job(invocation);
    REQUIRE(all_say(job, "ready", 2));
    job.type("\x03");
    REQUIRE(job.wait_for_output("Ctrl-C", 5s));  // ddrun says what a second one does
    ::usleep(200'000);                           // past the debounce of a burst
    job.type("\x03");
    CHECK(job.wait(3s) == 130);
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("LIFE-4: INT, then TERM also kills at once; the first signal names the code") {
    Program job(shell(2, "trap '' INT TERM; echo ready; while :; do sleep 1; done"));
    REQUIRE(all_say(job, "ready", 2));
    job.send_signal(SIGINT);
    REQUIRE(job.wait_for_output("SIGINT", 5s));
    job.send_signal(SIGTERM);
    CHECK(job.wait(3s) == 130);
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("LIFE-4: a burst of Ctrl-C ends the same way") {
    Program job(shell(2, "trap '' INT TERM; echo ready; while :; do sleep 1; done",
                      {"--shutdown-timeout=2"}));
    REQUIRE(all_say(job, "ready", 2));
    for (int press = 0; press < 5; ++press) job.send_signal(SIGINT);
    CHECK(job.wait(6s) == 130);
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("LIFE-5: the grace period is the user's: long enough to save, or cut short and said") {
    TemporaryDirectory directory;
    const auto saved = directory.file("saved");
    const auto script =
        "trap 'sleep 1.5; echo saved > " + saved + "; exit 0' TERM; echo ready; sleep 999 & wait";
    {
        Program job(shell(1, script, {"--shutdown-timeout=20"}));
        REQUIRE(all_say(job, "ready", 1));
        job.send_signal(SIGTERM);
        CHECK(job.wait(10s) == 143);
        CHECK(read_file(saved) == "saved\n");
        CHECK(job.leaves_nothing(1s));
    }
    {
        Program job(shell(2, "trap '' TERM; echo ready; while :; do sleep 1; done",
                          {"--shutdown-timeout=500ms"}));
        REQUIRE(all_say(job, "ready", 2));
        job.send_signal(SIGTERM);
        CHECK(job.wait(5s) == 143);
        CHECK(has(job.errors(), "grace"));
        CHECK(job.leaves_nothing(1s));
    }
}

TEST_CASE("LIFE-6: workers are stopped together, with one deadline") {
    const auto end = run(
        shell(16,
              "trap '' TERM; [ $RANK = 3 ] && { sleep 0.3; exit 7; }; while :; do sleep 1; done",
              {"--shutdown-timeout=1"}),
        20s);
    CHECK(end.code == 7);
    CHECK(end.seconds < 6);  // sixteen deadlines one after the other would take 15 s
    CHECK(end.left_nothing);
}

TEST_CASE("LIFE-7: an ignored hangup stays ignored, in ddrun and in its workers") {
    auto invocation = shell(2, "echo worker $$; sleep 1.5; echo done");
    invocation.before_exec = [] { ::signal(SIGHUP, SIG_IGN); };
    Program job(invocation);
    REQUIRE(all_say(job, "worker", 2));
    CHECK(ignores(pid_said(job, "worker"), SIGHUP));
    job.send_signal(SIGHUP);
    CHECK(job.wait(10s) == 0);
    CHECK(count_of(job.output(), "done") == 2);
}

TEST_CASE("LIFE-7: any other inherited disposition or mask is back to default in workers") {
    auto invocation = shell(1, "grep -E 'Sig(Blk|Ign)' /proc/self/status");
    invocation.before_exec = [] {
        ::signal(SIGTERM, SIG_IGN);
        ::signal(SIGUSR1, SIG_IGN);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, nullptr);
    };
    const auto end = run(invocation, 10s);
    CHECK(end.code == 0);
    for (const auto& line : lines_of(end.output)) {
        CAPTURE(line);
        CHECK(line.substr(line.size() - 16) == "0000000000000000");
    }
}

TEST_CASE(
    "LIFE-8: a rank that finishes early is waited for, unless an early-exit time-out is set") {
    const auto end =
        run(shell(4, "[ $RANK = 2 ] && exit 0; sleep 999", {"--early-exit-timeout=500ms"}), 10s);
    CHECK(end.code == 124);
    CHECK(has(end.errors, "rank 2"));
    CHECK(end.left_nothing);
    CHECK(run(shell(2, "[ $RANK = 1 ] && exit 0; sleep 1"), 10s).code == 0);
}

TEST_CASE(
    "LIFE-11: when nothing moves any more, the rank that gave no sign of life is the suspect") {
    const auto end = run(shell(3, "[ $RANK = 1 ] && exec sleep 999; echo tick; exec sleep 999",
                               {"--hang-timeout=1s"}),
                         20s);
    CHECK(end.code == 124);
    CHECK(has(end.errors, "rank 1"));
    CHECK(end.left_nothing);
}

TEST_CASE("LIFE-11: ranks that say nothing while others write are not a hang") {
    const auto end = run(shell(2,
                               "[ $RANK = 1 ] && { sleep 2; exit 0; }; for i in 1 2 3 4 5 6 7 8; "
                               "do echo tick; sleep 0.25; done",
                               {"--hang-timeout=1s"}),
                         20s);
    CHECK(end.code == 0);
}

TEST_CASE("SLURM-5: USR1 is forwarded to every worker and stops nothing") {
    Program job(shell(2,
                      "n=0; trap 'n=$((n+1)); echo got $n' USR1; echo ready; "
                      "while [ $n -lt 3 ]; do sleep 0.05; done"));
    REQUIRE(all_say(job, "ready", 2));
    for (int times = 1; times <= 3; ++times) {
        job.send_signal(SIGUSR1);
        REQUIRE(all_say(job, "got " + std::to_string(times), 2));
    }
    CHECK(job.wait(10s) == 0);
}

TEST_CASE("SLURM-5: a worker without a handler dies by USR1 and that is said") {
    Program job(shell(2, "echo ready; exec sleep 99"));
    REQUIRE(all_say(job, "ready", 2));
    job.send_signal(SIGUSR1);
    CHECK(job.wait(10s) == 128 + SIGUSR1);
    CHECK(has(job.errors(), "SIGUSR1"));
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("SLURM-5: CONT is harmless") {
    Program job(shell(2, "echo ready; sleep 0.5; echo done"));
    REQUIRE(all_say(job, "ready", 2));
    job.send_signal(SIGCONT);
    CHECK(job.wait(10s) == 0);
    CHECK(count_of(job.output(), "done") == 2);
}

TEST_CASE("SLURM-6: TERM to ddrun and all its processes at once is a stop, not a failure") {
    Program job(shell(3, "echo ready; exec sleep 99"));
    REQUIRE(all_say(job, "ready", 3));
    for (const auto pid : job.descendants()) ::kill(pid, SIGTERM);
    job.send_signal(SIGTERM);
    CHECK(job.wait(10s) == 143);
    CHECK_FALSE(has(job.errors(), "oot cause"));
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("Ctrl-Z stops the whole job, fg goes on") {
    auto invocation =
        shell(2, "i=0; while [ $i -lt 20 ]; do i=$((i+1)); sleep 0.05; done; echo finished");
    invocation.before_exec = [] { ::setpgid(0, 0); };  // a job of a shell, which could continue it
    Program job(invocation);
    REQUIRE(job.wait_until([&] { return job.descendants().size() >= 3; }, 5s));
    job.send_signal(SIGTSTP);
    REQUIRE(job.wait_until([&] { return process_state(job.pid()) == 'T'; }, 5s));
    // Z: it had just ended; D: it waits for the exec of a child that is stopped.
    const auto runs = [](pid_t pid) {
        const char state = process_state(pid);
        return (state == 'R' || state == 'S') &&
               !has(read_file("/proc/" + std::to_string(pid) + "/comm"), "keeper");
    };
    CHECK(job.wait_until(
        [&] {
            const auto all = job.descendants();
            return std::none_of(all.begin(), all.end(), runs);
        },
        1s));
    job.send_signal(SIGCONT);
    CHECK(job.wait(15s) == 0);
    CHECK(count_of(job.output(), "finished") == 2);
}

TEST_CASE("workers have /dev/null as stdin; --stdin=RANK gives it to one") {
    auto invocation = shell(2, "read line; echo rank $RANK got [$line]", {"--stdin=1"});
    invocation.stdin_open = true;
    Program job(invocation);
    job.type("hello\n");
    CHECK(job.wait(10s) == 0);
    CHECK(has(job.output(), "rank 1 got [hello]"));
    CHECK(has(job.output(), "rank 0 got []"));
}

TEST_CASE("K8S-1: as PID 1 ddrun reaps orphans, stops on TERM and keeps the exit code") {
    auto as_init = [](std::vector<std::string> arguments) {
        auto invocation = ddrun_with(std::move(arguments));
        invocation.argv.insert(invocation.argv.begin(),
                               {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"});
        return invocation;
    };
    if (run(Invocation{{"unshare", "--pid", "--fork", "--mount-proc", "true"},
                       {},
                       {},
                       "",
                       false,
                       false,
                       {}})
            .code != 0) {
        WARN("skipped: this machine does not allow PID namespaces");
        return;
    }
    CHECK(run(as_init({"--nproc-per-node=2", "sh", "-c", "exit 9"})).code == 9);
    const auto end =
        run(as_init({"--nproc-per-node=1", "sh", "-c",
                     "i=0; while [ $i -lt 300 ]; do (sleep 0 &); i=$((i+1)); done; sleep 1; "
                     "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"}),
            20s);
    CHECK(end.code == 0);
    CHECK(has(end.output, "0\n"));
}

TEST_CASE("a failed pod says why in its termination message; elsewhere that file is left alone") {
    TemporaryDirectory directory;
    const std::string message = directory.file("message");
    for (const bool in_pod : {true, false}) {
        write_file(message, "as it was");
        const std::string pod = "mount --bind '" + message + "' /dev/termination-log && exec '" +
                                ddrun_path() + "' --nproc-per-node=2 sh -c 'exit 3'";
        Invocation invocation;
        invocation.argv = {"unshare", "--mount", "sh", "-c",
                           "mount -t tmpfs none /dev && touch /dev/termination-log && "
                           "mknod -m 666 /dev/null c 1 3 && " +
                               pod};
        if (in_pod) invocation.env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
        const auto end = run(std::move(invocation), 10s);
        if (has(end.errors, "unshare:") || has(end.errors, "mknod:")) {
            WARN("skipped: no mount namespace here: " << end.errors);
            return;
        }
        INFO(end.errors);
        CHECK(end.code == 3);
        if (in_pod)
            CHECK(has(read_file(message), "root cause: node"));
        else
            CHECK(read_file(message) == "as it was");
    }
}
