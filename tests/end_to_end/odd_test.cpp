// Incidents that nobody listed: odd signals in odd moments, odd files, odd limits.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

using namespace ddrun::test;

namespace {

Invocation shell(const std::string& script, std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--nproc-per-node=2", "sh", "-c", script});
    return ddrun_with(std::move(flags));
}

bool all_ready(Program& job) {
    return job.wait_until([&] { return count_of(job.output(), "ready") >= 2; }, 10s);
}

}  // namespace

// --- job control ---------------------------------------------------------------------------------

TEST_CASE("Ctrl-Z where no shell could say fg does not freeze the job") {
    auto invocation = shell("echo ready; sleep 999");
    invocation.terminal = true;  // as under `ssh -t`: ddrun leads the session
    Program job(invocation);
    REQUIRE(all_ready(job));
    job.type("\032");
    ::usleep(200'000);  // until the workers were stopped and continued; nothing else shows it
    job.type("\003");
    CHECK(job.wait(10s) == 130);
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("CONT at the heels of TSTP leaves nothing stopped") {
    for (int trial = 0; trial < 60; ++trial) {
        auto invocation = shell("echo ready; sleep 999");
        invocation.before_exec = [] { ::setpgid(0, 0); };
        Program job(invocation);
        REQUIRE(all_ready(job));
        job.send_signal(SIGTSTP);
        ::usleep(static_cast<useconds_t>(trial * 30));
        job.send_signal(SIGCONT);
        job.send_signal(SIGTERM);
        REQUIRE(job.wait(10s) == 143);
    }
}

TEST_CASE(
    "Ctrl-Z typed to the rank that has the terminal stops the whole job, and the shell says so") {
    if (::access("/bin/bash", X_OK) != 0) return;
    Invocation invocation;
    invocation.argv = {"/bin/bash", "--norc", "--noprofile", "-i"};
    invocation.env = {{"PS1", "$ "}, {"HISTFILE", ""}};
    invocation.terminal = true;
    Program bash(invocation);
    const std::string command = ddrun_path() + " --stdin=0 cat";
    const auto says = [&](const std::string& text, std::size_t times) {
        return bash.wait_until([&] { return count_of(bash.output(), text) >= times; }, 10s);
    };
    INFO(bash.output());
    REQUIRE(says("$ ", 1));
    bash.type(command + "\r");
    REQUIRE(bash.wait_until([&] { return bash.descendants().size() >= 3; }, 10s));
    bash.type("one\n");
    REQUIRE(says("one", 2));  // the echo and the cat
    bash.type("\032");
    REQUIRE(says("Stopped", 1));
    REQUIRE(says("$ ", 2));
    const std::size_t so_far = count_of(bash.output(), command);
    bash.type("fg\r");
    REQUIRE(says(command, so_far + 1));
    bash.type("two\n");
    REQUIRE(says("two", 2));
    bash.type("\004");
    REQUIRE(says("$ ", 3));
    bash.type("echo code=$?; exit 7\r");
    CHECK(bash.wait(10s) == 7);
    CHECK(has(bash.output(), "code=0"));
}

// --- the keeper ----------------------------------------------------------------------------------

TEST_CASE("a keeper that somebody stopped goes on, and it is said once") {
    Program job(shell("kill -STOP $PPID; sleep 0.2; kill -STOP $PPID; sleep 0.2; exit 3"));
    CHECK(job.wait(15s) == 3);
    CHECK(count_of(job.errors(), "somebody stopped the keeper") == 1);
}

TEST_CASE("a worker that SIGKILL does not end is named in the summary, and not waited for") {
    Program job(shell("echo ready $$ $RANK; sleep 999", {"--shutdown-timeout=100ms"}));
    REQUIRE(all_ready(job));
    const auto worker = static_cast<pid_t>(std::atoi(
        job.output().c_str() + job.output().find("ready ") + std::string("ready ").size()));
    // Whoever traces a process holds its death back from its parent.
    if (::ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) != 0) {
        WARN("skipped: this machine does not let a process be traced");
        return;
    }
    job.send_signal(SIGTERM);
    CHECK(job.wait(25s) == 143);
    CHECK(has(job.errors(), "stopped by SIGTERM"));
    CHECK(has(job.errors(), "process " + std::to_string(worker) + " "));
    CHECK(has(job.errors(), "traced by pid " + std::to_string(::getpid())));
    ::waitpid(worker, nullptr, 0);  // lets it go
    CHECK(job.leaves_nothing(2s));
}

// --- files ---------------------------------------------------------------------------------------

TEST_CASE("--status-file never takes the place of a device, a socket or a directory") {
    const TemporaryDirectory directory;
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    for (const std::string& place : {fifo, directory.path(), std::string("/dev/null/x")}) {
        const auto end = run_ddrun({"--status-file=" + place, "true"});
        CHECK(end.code == 2);
        CHECK(has(end.errors, "--status-file: "));
        CHECK(has(end.errors, place));
    }
    CHECK(std::filesystem::is_fifo(fifo));
}

TEST_CASE("--status-file follows a link to a file") {
    const TemporaryDirectory directory;
    write_file(directory.file("real"), "");
    std::filesystem::create_symlink(directory.file("real"), directory.file("link"));
    CHECK(run_ddrun({"--status-file=" + directory.file("link"), "true"}).code == 0);
    CHECK(std::filesystem::is_symlink(directory.file("link")));
    CHECK(has(read_file(directory.file("real")), "finished"));
}

// --- limits --------------------------------------------------------------------------------------

TEST_CASE("whatever the limit of descriptors, the end is 0, or 71 in words") {
    for (rlim_t limit = 4; limit < 28; ++limit) {
        auto invocation = ddrun_with({"--nproc-per-node=2", "true"});
        invocation.before_exec = [limit] {
            for (int inherited = 3; inherited < 64; ++inherited) ::close(inherited);
            const rlimit files{limit, limit};
            ::setrlimit(RLIMIT_NOFILE, &files);
        };
        const auto end = run(invocation);
        INFO("RLIMIT_NOFILE " << limit << ": " << end.errors);
        CHECK((end.code == 0 || end.code == 71));
        CHECK((end.code == 0 || has(end.errors, "Too many open files")));
        CHECK(end.left_nothing);
    }
}

TEST_CASE("a file size limit costs the status file, not the job") {
    const TemporaryDirectory directory;
    auto invocation =
        ddrun_with({"--status-file=" + directory.file("status"), "sh", "-c", "exit 5"});
    invocation.before_exec = [] {
        const rlimit size{0, 0};
        ::setrlimit(RLIMIT_FSIZE, &size);
    };
    CHECK(run(invocation).code == 5);
}

TEST_CASE("what was asked to be printed arrives whole, or the end is 71") {
    auto invocation = ddrun_with({"--help=all"});
    invocation.before_exec = [] { ::dup2(::open("/dev/full", O_WRONLY | O_CLOEXEC), 1); };
    const auto full = run(invocation);
    CHECK(full.code == 71);
    CHECK(has(full.errors, "write to stdout: No space left"));

    invocation.before_exec = [] {  // a small pipe on which somebody else set a flag
        ::fcntl(1, F_SETPIPE_SZ, 4096);
        ::fcntl(1, F_SETFL, O_WRONLY | O_NONBLOCK);
    };
    CHECK(run(invocation).output == run_ddrun({"--help=all"}).output);
}
