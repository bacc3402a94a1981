// Group E: exit status and diagnosis.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <string>

using namespace ddrun::test;

TEST_CASE("OK: every worker exited 0, so ddrun exits 0 and says nothing") {
    const auto end = run(shell(4, "exit 0"));
    CHECK(end.code == 0);
    CHECK(end.output.empty());
    CHECK(end.errors.empty());
    CHECK(end.left_nothing);
}

TEST_CASE("EXIT-1: ddrun ends with the code of the worker that failed") {
    for (const int code : {1, 2, 3, 15, 42, 70, 126, 255}) {
        CAPTURE(code);
        const auto end =
            run(shell(3, "[ $RANK = 1 ] && exit " + std::to_string(code) + "; sleep 99"), 10s);
        CHECK(end.code == code);
        CHECK(has(end.errors, "exit code " + std::to_string(code)));
        CHECK(has(end.errors, "rank 1"));
        CHECK(end.left_nothing);
    }
}

TEST_CASE("EXIT-1: a failure after another rank's exit 0 is still a failure") {
    const auto end = run(shell(2, "[ $RANK = 0 ] && exit 0; sleep 0.3; exit 5"), 10s);
    CHECK(end.code == 5);
}

TEST_CASE("EXIT-1: a failure in the last restart counts, not an earlier one") {
    const auto end =
        run(shell(2, "[ $RANK = 1 ] && exit $((40 + TORCHELASTIC_RESTART_COUNT)); sleep 99",
                  {"--max-restarts=1"}),
            10s);
    CHECK(end.code == 41);
}

TEST_CASE("a worker killed by a signal gives 128 + the signal, and exit 15 is not SIGTERM") {
    const auto segv = run(shell(2, "[ $RANK = 1 ] && kill -SEGV $$; sleep 99"), 10s);
    CHECK(segv.code == 128 + SIGSEGV);
    CHECK(has(segv.errors, "SIGSEGV"));
    const auto fifteen = run(shell(2, "[ $RANK = 1 ] && exit 15; sleep 99"), 10s);
    CHECK(fifteen.code == 15);
    CHECK_FALSE(has(fifteen.errors, "killed by SIGTERM"));
    const auto term = run(shell(2, "[ $RANK = 1 ] && kill -TERM $$; sleep 99"), 10s);
    CHECK(term.code == 128 + SIGTERM);
}

TEST_CASE("EXIT-2: SIGBUS is named and /dev/shm is looked at") {
    const auto end = run(shell(2, "[ $RANK = 1 ] && kill -BUS $$; sleep 99"), 10s);
    CHECK(end.code == 135);
    CHECK(has(end.errors, "SIGBUS"));
    CHECK(has(end.errors, "/dev/shm"));
}

TEST_CASE("EXIT-3: a SIGKILL from outside is told apart from ddrun's own") {
    const auto end = run(shell(2, "[ $RANK = 1 ] && kill -9 $$; sleep 99"), 10s);
    CHECK(end.code == 137);
    CHECK(has(end.errors, "SIGKILL"));
    CHECK(has(end.errors, "not sent by ddrun"));
    CHECK(has(end.errors, "rank 1"));
}

TEST_CASE(
    "EXIT-5: the rank that failed first is the cause, with its words; the others are collateral") {
    TemporaryDirectory directory;
    const auto flag = directory.file("failed");
    const auto end = run(shell(8, "if [ $RANK = 5 ]; then echo DISK GONE >&2; touch " + flag +
                                      "; exit 3; fi; "
                                      "while [ ! -e " +
                                      flag +
                                      " ]; do sleep 0.01; done; sleep 0.02; "
                                      "echo connection reset >&2; exit 1"),
                         10s);
    CHECK(end.code == 3);
    CHECK(has(end.errors, "rank 5"));
    const auto cause = end.errors.find("oot cause");
    REQUIRE(cause != std::string::npos);
    CHECK(end.errors.find("DISK GONE", cause) != std::string::npos);
}

TEST_CASE("EXIT-5: workers that ddrun stopped are not listed as failures") {
    const auto end = run(shell(4, "[ $RANK = 2 ] && exit 7; sleep 99"), 10s);
    CHECK(end.code == 7);
    CHECK(has(end.errors, "stopped by ddrun"));
    CHECK(count_of(end.errors, "exit code 7") >= 1);
}

TEST_CASE("EXIT-6: told to stop by TERM is 143, whatever the workers answer") {
    for (const char* answer : {"exit 0", "exit 1"}) {
        CAPTURE(answer);
        Program job(shell(2, std::string("trap '") + answer + "' TERM; echo ready; sleep 99 & wait",
                          {"--max-restarts=3"}));
        REQUIRE(job.wait_until([&] { return count_of(job.output(), "ready") == 2; }, 10s));
        job.send_signal(SIGTERM);
        CHECK(job.wait(10s) == 143);
        CHECK(has(job.errors(), "SIGTERM"));
        CHECK(has(job.errors(), "pid " + std::to_string(getpid())));
        CHECK_FALSE(has(job.errors(), "oot cause"));
        CHECK(job.leaves_nothing(1s));
    }
}

TEST_CASE("EXIT-6: INT, HUP and QUIT give 130, 129 and 131") {
    for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) {
        CAPTURE(signal);
        Program job(shell(2, "echo ready; exec sleep 99"));
        REQUIRE(job.wait_until([&] { return count_of(job.output(), "ready") == 2; }, 10s));
        job.send_signal(signal);
        CHECK(job.wait(10s) == 128 + signal);
        CHECK(job.leaves_nothing(1s));
    }
}

TEST_CASE("EXIT-8: a program that does not exist is 127, at once, and uses no restart") {
    const auto end = run_ddrun({"--nproc-per-node=2", "--max-restarts=5", "nosuchprogram"}, 5s);
    CHECK(end.code == 127);
    CHECK(end.seconds < 2);
    CHECK(has(end.errors, "nosuchprogram"));
    CHECK(has(end.errors, "PATH"));
    CHECK_FALSE(has(end.errors, "attempt"));
}

TEST_CASE("EXIT-8: found but not executable, a directory, or a foreign format is 126") {
    TemporaryDirectory directory;
    const auto plain = directory.file("notexec");
    write_file(plain, "#!/bin/sh\nexit 0\n");
    CHECK(run_ddrun({plain}, 5s).code == 126);
    CHECK(run_ddrun({directory.path()}, 5s).code == 126);
    const auto foreign = directory.file("foreign");
    write_file(foreign, std::string("\x7f"
                                    "ELF\x02\x01\x01",
                                    7) +
                            std::string(57, '\x09'));
    ::chmod(foreign.c_str(), 0755);
    const auto end = run_ddrun({foreign}, 5s);
    CHECK(end.code == 126);
    CHECK(has(end.errors, foreign));
}

TEST_CASE("EXIT-8: a script whose interpreter ends in CR is explained") {
    TemporaryDirectory directory;
    const auto script = directory.file("crlf");
    write_file(script, "#!/bin/sh\r\nexit 0\r\n");
    ::chmod(script.c_str(), 0755);
    const auto end = run_ddrun({script}, 5s);
    CHECK(end.code == 127);
    CHECK(has(end.errors, "/bin/sh\\r"));
}

TEST_CASE("EXIT-8: relative paths count from ddrun's own directory, which workers inherit") {
    TemporaryDirectory directory;
    const auto script = directory.file("here");
    write_file(script, "#!/bin/sh\npwd\n");
    ::chmod(script.c_str(), 0755);
    auto invocation = ddrun_with({"./here"});
    invocation.directory = directory.path();
    const auto end = run(invocation, 5s);
    CHECK(end.code == 0);
    CHECK(has(end.output, directory.path()));
}

TEST_CASE("EXIT-8: a deleted working directory ends in words, not in a hang") {
    TemporaryDirectory directory;
    const auto gone = directory.file("gone");
    const auto end = run({{"/bin/sh", "-c",
                           "mkdir " + gone + " && cd " + gone + " && rmdir " + gone + " && exec " +
                               ddrun_path() + " ./prog"},
                          {},
                          {},
                          "",
                          false,
                          false,
                          {}},
                         5s);
    CHECK(end.code == 127);
    CHECK(has(end.errors, "prog"));
}

TEST_CASE("the summary names code, rank, local rank and pid, and keeps the last lines of stderr") {
    const auto end = run(shell(2,
                               "[ $RANK = 1 ] || sleep 99; i=0; while [ $i -lt 30 ]; do echo line "
                               "$i >&2; i=$((i+1)); done; exit 9"),
                         10s);
    CHECK(end.code == 9);
    CHECK(has(end.errors, "rank 1"));
    CHECK(has(end.errors, "local"));
    CHECK(has(end.errors, "pid "));
    CHECK(count_of(end.errors, "line 29") == 2);   // once as it came, once in the summary
    CHECK(count_of(end.errors, "line 3\n") == 1);  // outside the last twenty
}
