// Group G: output and logs, and group A: ports.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

using namespace ddrun::test;

namespace {

// All files under `top` whose name is `name`.
std::vector<std::string> files_named(const std::string& top, const std::string& name) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top))
        if (entry.path().filename() == name) found.push_back(entry.path().string());
    return found;
}

int listen_somewhere(int& port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(fd, 1) == 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    return fd;
}

}  // namespace

TEST_CASE("LOG-1: lines of many ranks are never mixed, split lines are joined") {
    const auto end = run(
        shell(16,
              "i=0; while [ $i -lt 200 ]; do printf 'rank %s ' $RANK; printf 'line %s ' $i; "
              "printf '%050d' $i; echo ' end'; i=$((i+1)); done; printf 'last without newline'"),
        60s);
    REQUIRE(end.code == 0);
    std::map<int, int> next;
    int whole = 0;
    for (const auto& line : lines_of(end.output)) {
        int prefix = -1, rank = -1, number = -1;
        if (has(line, "last without newline")) {
            ++whole;
            continue;
        }
        REQUIRE(std::sscanf(line.c_str(), "[%d] rank %d line %d", &prefix, &rank, &number) == 3);
        CHECK(prefix == rank);
        CHECK(number == next[rank]++);
        CHECK(line.substr(line.size() - 4) == " end");
        ++whole;
    }
    CHECK(whole == 16 * 201);
}

TEST_CASE("LOG-5: what reached the pipe before a violent death is shown") {
    const auto end = run(
        shell(1, "yes 0123456789012345678901234567890 | head -c 500000; echo THE END; kill -9 $$"),
        10s);
    CHECK(end.code == 137);
    CHECK(has(end.output, "THE END"));
    CHECK(end.output.size() > 500000);
}

TEST_CASE("LOG-5: a holder of the pipe does not delay the end") {
    const auto end = run(shell(2, "setsid sleep 60 & exit 0"), 10s);
    CHECK(end.code == 0);
    CHECK(end.seconds < 4);
    CHECK(end.left_nothing);
}

TEST_CASE("LOG-5: output appears at once, and Python is told not to buffer") {
    Program job(shell(1, "echo unbuffered=$PYTHONUNBUFFERED; sleep 30"));
    CHECK(job.wait_for_output("unbuffered=1", 2s));
    job.send_signal(SIGTERM);
    CHECK(job.wait(5s) == 143);
    auto chosen = shell(1, "echo unbuffered=[$PYTHONUNBUFFERED]");
    chosen.env["PYTHONUNBUFFERED"] = "";
    CHECK(has(run(chosen).output, "unbuffered=[]"));
}

TEST_CASE("LOG-6: the prefix is the global rank; templates and no prefix are possible") {
    CHECK(has(run(shell(2, "echo hi")).output, "[1] hi\n"));
    CHECK(
        has(run(shell(2, "echo hi",
                      {"--log-line-prefix-template=<${role_name}/${local_rank}> ", "--role=actor"}))
                .output,
            "<actor/1> hi\n"));
    const auto plain = run(shell(2, "echo hi", {"--log-line-prefix-template=none"}));
    CHECK(plain.output == "hi\nhi\n");
}

TEST_CASE("LOG-6: files have bytes exactly as written, one directory a rank and attempt") {
    TemporaryDirectory directory;
    const auto end = run(shell(12, "printf 'a\\000b\\r\\nno newline'; echo err $RANK >&2",
                               {"--log-dir=" + directory.path(), "-t", "3", "-r", "10-11:3"}),
                         10s);
    REQUIRE(end.code == 0);
    const auto outs = files_named(directory.path(), "stdout.log");
    REQUIRE(outs.size() == 12);
    for (const auto& file : outs) CHECK(read_file(file) == std::string("a\0b\r\nno newline", 15));
    CHECK(files_named(directory.path(), "stderr.log").size() == 12);
}

TEST_CASE("LOG-6: -r 10:1 with two digits redirects that rank only") {
    TemporaryDirectory directory;
    const auto end =
        run(shell(12, "echo out $RANK", {"--log-dir=" + directory.path(), "-r", "10:1"}), 10s);
    CHECK(end.code == 0);
    CHECK_FALSE(has(end.output, "out 10"));
    CHECK(has(end.output, "out 11"));
    REQUIRE(files_named(directory.path(), "stdout.log").size() == 1);
    CHECK(read_file(files_named(directory.path(), "stdout.log")[0]) == "out 10\n");
}

TEST_CASE(
    "lines that hold a filter's text also go to one file of all ranks, each with its prefix") {
    TemporaryDirectory directory;
    const auto end =
        run(shell(3, "echo loss $RANK; echo other",
                  {"--log-dir=" + directory.path(), "--duplicate-stdout-filters=loss"}),
            10s);
    CHECK(end.code == 0);
    const auto files = files_named(directory.path(), "filtered_stdout.log");
    REQUIRE(files.size() == 1);
    const auto text = read_file(files[0]);
    CHECK(lines_of(text).size() == 3);
    for (int rank = 0; rank < 3; ++rank)
        CHECK(has(text, "[" + std::to_string(rank) + "] loss " + std::to_string(rank) + "\n"));
}

TEST_CASE("a filter hides ranks from the console but not the tail of the culprit") {
    const auto end =
        run(shell(4, "echo hello; [ $RANK = 3 ] && { sleep 0.5; echo WHY >&2; exit 3; }; sleep 99",
                  {"--ranks-filter=0-1"}),
            10s);
    CHECK(end.code == 3);
    CHECK(has(end.output, "[0] hello"));
    CHECK_FALSE(has(end.output, "[2] hello"));
    CHECK(has(end.errors, "WHY"));
}

TEST_CASE("LOG-7: a full device does not hurt the job") {
    auto invocation =
        shell(2, "i=0; while [ $i -lt 2000 ]; do echo 01234567890123456789; i=$((i+1)); done");
    invocation.before_exec = [] {
        const int full = ::open("/dev/full", O_WRONLY);
        ::dup2(full, 1);
    };
    const auto end = run(invocation, 20s);
    CHECK(end.code == 0);
    CHECK(has(end.errors, "No space left"));
}

TEST_CASE("LOG-7: a full log disk loses bytes, says so once, and the workers run on") {
    TemporaryDirectory directory;
    if (::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
        WARN("skipped: cannot mount a small tmpfs here");
        return;
    }
    const auto end = run(shell(1, "yes 0123456789 | head -c 1000000; echo finished",
                               {"--log-dir=" + directory.path(), "-t", "3"}),
                         20s);
    ::umount2(directory.path().c_str(), MNT_DETACH);
    CHECK(end.code == 0);
    CHECK(has(end.output, "finished"));
    CHECK(has(end.errors, "No space left"));
    CHECK(has(end.errors, directory.path()));
}

TEST_CASE(
    "LOG-8: an explicit log directory that cannot be used is a usage error before the start") {
    TemporaryDirectory directory;
    write_file(directory.file("plain"), "x");
    const auto end =
        run(shell(1, "echo started", {"--log-dir=" + directory.file("plain") + "/logs", "-r", "3"}),
            5s);
    CHECK(end.code == 2);
    CHECK_FALSE(has(end.output, "started"));
    CHECK(has(end.errors, directory.file("plain")));
    CHECK(has(end.errors, "Not a directory"));
}

TEST_CASE("LOG-8: runs and attempts never overwrite each other") {
    TemporaryDirectory directory;
    for (int i = 0; i < 2; ++i)
        CHECK(
            run(shell(
                    1,
                    "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ]",
                    {"--log-dir=" + directory.path(), "-t", "1", "--max-restarts=1"}),
                10s)
                .code == 0);
    CHECK(files_named(directory.path(), "stdout.log").size() == 4);
}

TEST_CASE("LOG-9: the reader of our output goes away, the job goes on") {
    TemporaryDirectory directory;
    const auto done = directory.file("done");
    Program job(shell(
        2, "echo first; while [ ! -e " + directory.file("go") +
               " ]; do sleep 0.02; done; "
               "i=0; while [ $i -lt 3000 ]; do echo more output; i=$((i+1)); done; echo x >> " +
               done));
    REQUIRE(job.wait_for_output("first", 5s));
    job.close_output();
    write_file(directory.file("go"), "");
    CHECK(job.wait(20s) == 0);
    CHECK(read_file(done) == "x\nx\n");
}

TEST_CASE("LOG-9: the terminal vanishes under nohup, the job goes on") {
    TemporaryDirectory directory;
    auto invocation = shell(
        1, "trap '' HUP; echo first; sleep 0.5; echo second; echo x > " + directory.file("done"));
    invocation.terminal = true;
    invocation.before_exec = [] { ::signal(SIGHUP, SIG_IGN); };
    Program job(invocation);
    REQUIRE(job.wait_for_output("first", 5s));
    job.close_terminal();
    CHECK(job.wait(10s) == 0);
    CHECK(read_file(directory.file("done")) == "x\n");
}

TEST_CASE("LOG-9: a stopped reader does not stop the workers for ever") {
    TemporaryDirectory directory;
    const auto done = directory.file("done");
    auto invocation = shell(
        1, "yes 0123456789012345678901234567890123456789 | head -c 30000000; echo x > " + done);
    // A pipe that nobody reads.
    invocation.argv = {"/bin/sh", "-c", "exec \"$@\" > " + directory.file("fifo"), "sh"};
    const auto job_argv =
        shell(1,
              "yes 0123456789012345678901234567890123456789 | head -c 30000000; echo x > " + done)
            .argv;
    invocation.argv.insert(invocation.argv.end(), job_argv.begin(), job_argv.end());
    REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
    const int never_read = ::open(directory.file("fifo").c_str(), O_RDWR | O_CLOEXEC);
    Program job(invocation);
    CHECK(job.wait(40s) == 0);
    CHECK(read_file(done) == "x\n");
    CHECK(has(job.errors(), "dropped"));
    ::close(never_read);
}

TEST_CASE("LOG-9: stdout closed at the start is no reason to fail") {
    auto invocation = shell(2, "echo hi; echo err >&2");
    invocation.before_exec = [] { ::close(1); };
    CHECK(run(invocation, 5s).code == 0);
    invocation.before_exec = [] {
        ::close(0);
        ::close(1);
        ::close(2);
    };
    CHECK(run(invocation, 5s).code == 0);
}

TEST_CASE("PORT-1: the well-known ports may be taken; one node picks a free one") {
    const auto end = run(shell(2, "echo port $MASTER_PORT at $MASTER_ADDR"), 5s);
    CHECK(end.code == 0);
    CHECK(has(end.output, "at 127.0.0.1"));
}

TEST_CASE("PORT-1: an explicit port that is taken ends with 71 and names the holder") {
    int port = 0;
    const int held = listen_somewhere(port);
    const auto end = run(shell(2, "echo started", {"--master-port=" + std::to_string(port)}), 5s);
    ::close(held);
    CHECK(end.code == 71);
    CHECK(end.seconds < 2);
    CHECK_FALSE(has(end.output, "started"));
    CHECK(has(end.errors, std::to_string(port)));
    CHECK(has(end.errors, "Address already in use"));
    CHECK(has(end.errors, "pid " + std::to_string(getpid())));
}

TEST_CASE("PORT-1: the worker of rank 0 can bind MASTER_PORT") {
    const auto script =
        "import os,socket; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, "
        "1); "
        "s.bind((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))); s.listen(); "
        "print('bound')";
    const auto end = run(ddrun_with({"--nproc-per-node=1", "python3", "-c", script}), 10s);
    CHECK(end.code == 0);
    CHECK(has(end.output, "bound"));
}

TEST_CASE("PORT-2: two jobs on one machine stay two") {
    const auto script = "echo world $RANK/$WORLD_SIZE; sleep 0.3";
    Program first(shell(2, script));
    Program second(shell(2, script));
    CHECK(first.wait(10s) == 0);
    CHECK(second.wait(10s) == 0);
    for (const auto* job : {&first, &second}) {
        CHECK(count_of(job->output(), "world") == 2);
        CHECK(has(job->output(), "world 0/2"));
        CHECK(has(job->output(), "world 1/2"));
    }
}
