#include "rendezvous/protocol/exit_status.hpp"

#include "tests/support/catch.hpp"

#include <sys/wait.h>
#include <csignal>
#include <cstdlib>

using ddrun::ExitStatus;
using ddrun::signal_name;
using ddrun::signal_number;

TEST_CASE("exit 15 and death by SIGTERM are different things") {
    const auto exited = ExitStatus::from_wait_status(15 << 8);
    const auto killed = ExitStatus::from_wait_status(15);
    CHECK(exited == ExitStatus{ExitStatus::Kind::exited, 15, false});
    CHECK(killed == ExitStatus{ExitStatus::Kind::signalled, 15, false});
    CHECK(exited.shell_code() == 15);
    CHECK(killed.shell_code() == 143);
    CHECK(exited.describe() == "exit code 15");
    CHECK(killed.describe() == "killed by SIGTERM (terminated)");
}

TEST_CASE("only exit code 0 is success") {
    CHECK(ExitStatus::from_wait_status(0).succeeded());
    CHECK_FALSE(ExitStatus::from_wait_status(1 << 8).succeeded());
    CHECK_FALSE(ExitStatus::from_wait_status(9).succeeded());
    CHECK(ExitStatus::from_wait_status(9).was_signalled());
}

TEST_CASE("a core dump is told") {
    const auto status = ExitStatus::from_wait_status(SIGSEGV | 0x80);
    CHECK(status.core_dumped);
    CHECK(status.describe() == "killed by SIGSEGV (segmentation fault) (core dumped)");
    CHECK(ExitStatus::from_wait_status(SIGKILL).describe() == "killed by SIGKILL");
    CHECK(ExitStatus::from_wait_status(36).describe() == "killed by SIGRTMIN+2");
}

TEST_CASE("every wait status means what wait(2) says") {
    for (int raw = 0; raw < 0x10000; ++raw) {
        if (!WIFEXITED(raw) && !WIFSIGNALED(raw)) continue;
        const auto status = ExitStatus::from_wait_status(raw);
        REQUIRE(status.was_signalled() == (WIFSIGNALED(raw) != 0));
        REQUIRE(status.value == (WIFSIGNALED(raw) ? WTERMSIG(raw) : WEXITSTATUS(raw)));
        REQUIRE(status.core_dumped == (WIFSIGNALED(raw) && WCOREDUMP(raw)));
    }
}

TEST_CASE("signal names are those of this system") {
    CHECK(signal_name(SIGHUP) == "SIGHUP");
    CHECK(signal_name(SIGBUS) == "SIGBUS");
    CHECK(signal_name(SIGUSR2) == "SIGUSR2");
    CHECK(signal_name(SIGCHLD) == "SIGCHLD");
    CHECK(signal_name(SIGWINCH) == "SIGWINCH");
    CHECK(signal_name(SIGSYS) == "SIGSYS");
    CHECK(signal_name(SIGRTMIN) == "SIGRTMIN");
    CHECK(signal_name(SIGRTMAX) == "SIGRTMIN+30");
    CHECK(signal_name(32) == "signal 32");
    CHECK(signal_name(0) == "signal 0");
    CHECK(signal_name(77) == "signal 77");
    CHECK(signal_name(-3) == "signal -3");
}

TEST_CASE("a signal is named in any spelling") {
    for (const char* text : {"SIGTERM", "TERM", "term", "SigTerm", "15"}) {
        CHECK(signal_number(text) == SIGTERM);
    }
    CHECK(signal_number("RTMIN+2") == SIGRTMIN + 2);
    CHECK(signal_number("SIGRTMAX-1") == SIGRTMAX - 1);
    CHECK(signal_number("IOT") == SIGABRT);
    CHECK(signal_number("CLD") == SIGCHLD);
    CHECK(signal_number("POLL") == SIGIO);
}

TEST_CASE("what is no signal gives 0") {
    for (const char* text :
         {"", "0", "65", "-1", "15x", " 15", "SIG", "SIGFOO", "SIGSIGTERM", "RTMIN-1", "RTMIN+31",
          "RTMAX+1", "RTMIN+", "RTMINx", "999999999999"}) {
        INFO(text);
        CHECK(signal_number(text) == 0);
    }
}

TEST_CASE("names and numbers of signals agree") {
    for (int signal = 1; signal <= 64; ++signal) {
        if (signal == 32 || signal == 33) continue;
        CHECK(signal_number(signal_name(signal)) == signal);
        CHECK(signal_number(std::to_string(signal)) == signal);
    }
}

TEST_CASE("the codes of ddrun's own ends never change") {
    namespace code = ddrun::exit_code;
    CHECK(code::success == 0);
    CHECK(code::usage == 2);
    CHECK(code::internal_error == 70);
    CHECK(code::system_refused == 71);
    CHECK(code::group_lost == 75);
    CHECK(code::not_authorised == 77);
    CHECK(code::never_retry == 93);
    CHECK(code::timed_out == 124);
    CHECK(code::not_executable == 126);
    CHECK(code::not_found == 127);
    CHECK(code::signal_base == 128);
}
