#include "fake_agent.hpp"
#include "launcher/keeper/proc.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>

// --stdin=RANK: one worker owns ddrun's terminal. Each story runs in a child that leads a session
// with a pseudo terminal, as a shell's foreground job would be.
using namespace ddrun::launcher::keeper;

namespace {

struct Terminal {
    int master = -1;
    int slave = -1;
    [[nodiscard]] pid_t foreground() const { return ::tcgetpgrp(slave); }
    [[nodiscard]] bool comes_to_front(pid_t group) const {
        return eventually([&] { return foreground() == group; });
    }
    void type(const std::string& keys) const { (void)!::write(master, keys.data(), keys.size()); }
};

Terminal take_terminal() {
    Terminal terminal;
    terminal.master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ::grantpt(terminal.master);
    ::unlockpt(terminal.master);
    ::setsid();
    terminal.slave = ::open(::ptsname(terminal.master), O_RDWR | O_CLOEXEC);
    ::ioctl(terminal.slave, TIOCSCTTY, 0);
    ::signal(SIGTTOU, SIG_IGN);
    return terminal;
}

void expect_true(bool condition, const char* what) {
    if (!condition) throw std::runtime_error(what);
}

// Runs the story in a session of its own; false, and words on stderr, when something in it was not
// true.
bool in_terminal(const std::function<void(const Terminal&)>& story) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
        int result = 0;
        try {
            story(take_terminal());
        } catch (const std::exception& error) {
            std::cerr << "not true: " << error.what() << std::endl;
            result = 1;
        }
        ::_exit(result);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status == 0;
}

SpawnChoices owner(const Terminal& terminal) {
    SpawnChoices choices;
    choices.input = terminal.slave;
    choices.owns_stdin = true;
    return choices;
}

}  // namespace

TEST_CASE("the owner of the terminal reads from it, in the foreground; then ddrun has it back") {
    CHECK(in_terminal([](const Terminal& terminal) {
        FakeAgent agent;
        agent.spawn_shell(0, "echo ready; read -r line; echo \"got $line\"", owner(terminal));
        agent.spawn_shell(1, "read -r line; echo \"none\"");
        agent.await_output(0, "ready");
        const pid_t worker = agent.started(0);
        expect_true(terminal.foreground() == worker, "the worker has the foreground");
        expect_true(::getsid(worker) == ::getsid(0), "the worker stays in ddrun's session");
        expect_true(::getpgid(worker) == worker, "the worker leads a group");
        terminal.type("hello\n");
        expect_true(agent.output(0).find("got hello") != std::string::npos, "it could read");
        expect_true(terminal.comes_to_front(::getpgrp()), "the terminal is ddrun's again");
    }));
}

TEST_CASE("Ctrl-C goes to the worker that owns the terminal") {
    CHECK(in_terminal([](const Terminal& terminal) {
        FakeAgent agent;
        agent.spawn_shell(0, "trap 'echo interrupted; exit 3' INT; echo ready; read -r line",
                          owner(terminal));
        agent.await_output(0, "ready");
        terminal.type("\003");
        expect_true(WEXITSTATUS(agent.expect<Exited>().wait_status) == 3, "its own handler ran");
        expect_true(terminal.comes_to_front(::getpgrp()), "the terminal is ddrun's again");
    }));
}

TEST_CASE("a job in the background does not take the terminal") {
    CHECK(in_terminal([](const Terminal& terminal) {
        const pid_t other = ::fork();
        if (other == 0) {
            ::setpgid(0, 0);
            for (;;) ::pause();
        }
        ::setpgid(other, other);
        ::tcsetpgrp(terminal.slave, other);
        FakeAgent agent;
        agent.spawn_shell(0, "echo ready; read -r line < /dev/zero", owner(terminal));
        agent.await_output(0, "ready");
        expect_true(terminal.foreground() == other, "the foreground is untouched");
        ::kill(other, SIGKILL);
    }));
}

TEST_CASE("Ctrl-Z gives the terminal back, fg gives it to the worker again") {
    CHECK(in_terminal([](const Terminal& terminal) {
        FakeAgent agent;
        agent.spawn_shell(0, "echo ready; read -r line; echo \"got $line\"", owner(terminal));
        agent.await_output(0, "ready");
        const pid_t worker = agent.started(0);
        terminal.type("\032");
        expect_true(agent.expect<StoppedOrContinued>().stopped, "the worker's stop is told");
        agent.send(Suspend{true});
        expect_true(terminal.comes_to_front(::getpgrp()), "the terminal is ddrun's");
        agent.send(Suspend{false});
        expect_true(terminal.comes_to_front(worker), "the terminal is the worker's again");
        terminal.type("again\n");
        expect_true(agent.output(0).find("got again") != std::string::npos, "it could read");
    }));
}

TEST_CASE("in the background the owner of stdin stops at its first read; nothing typed is taken") {
    CHECK(in_terminal([](const Terminal& terminal) {
        const pid_t other = ::fork();
        if (other == 0) {
            ::setpgid(0, 0);
            for (;;) ::pause();
        }
        ::setpgid(other, other);
        ::tcsetpgrp(terminal.slave, other);
        FakeAgent agent;
        agent.spawn_shell(0, "read -r line; echo \"got $line\"", owner(terminal));
        terminal.type("first\n");
        expect_true(agent.expect<StoppedOrContinued>().stopped, "its read stopped it");
        ::tcsetpgrp(terminal.slave, ::getpgrp());
        agent.send(Suspend{false});
        expect_true(agent.output(0).find("got first") != std::string::npos, "then it could read");
        ::kill(other, SIGKILL);
    }));
}

TEST_CASE("a killed owner of the terminal leaves it as it was") {
    CHECK(in_terminal([](const Terminal& terminal) {
        termios before{};
        ::tcgetattr(terminal.slave, &before);
        FakeAgent agent;
        agent.spawn_shell(0, "stty raw -echo; kill -9 $$", owner(terminal));
        (void)agent.expect<Exited>();
        termios after{};
        ::tcgetattr(terminal.slave, &after);
        expect_true(after.c_lflag == before.c_lflag, "echo and line mode are back");
    }));
}

TEST_CASE("the owner of the terminal is ended like all others, and the terminal returns") {
    CHECK(in_terminal([](const Terminal& terminal) {
        FakeAgent agent;
        agent.spawn_shell(0, "trap '' TERM; sleep 999 & echo ready; read -r line < /dev/zero",
                          owner(terminal));
        agent.await_output(0, "ready");
        agent.send(KillRound{1});
        agent.expect<RoundClear>();
        expect_true(terminal.foreground() == ::getpgrp(), "the terminal is ddrun's again");
        expect_true(living_with_mark(agent.mark()).empty(), "nothing is left");
    }));
}
