// What the keeper does by itself when its agent does not renew the lease, and what it says last.
#include "fake_agent.hpp"
#include "launcher/keeper/proc.hpp"
#include "rendezvous/platform/last_words.hpp"
#include "tests/support/catch.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

using namespace ddrun::launcher::keeper;
using ddrun::UniqueFd;

namespace {

std::int64_t in(std::chrono::milliseconds time) {
    return (std::chrono::steady_clock::now() + time).time_since_epoch().count();
}
std::int64_t nanoseconds(std::chrono::milliseconds time) {
    return std::chrono::nanoseconds(time).count();
}

char state_of(pid_t pid) {
    const std::string stat = read_proc_file(pid, "stat", 512);
    const auto close = stat.rfind(')');
    return close == std::string::npos ? '?' : stat[close + 2];
}
// A shell whose child was stopped between vfork and exec waits for it in D, and does not run
// either.
bool is_frozen(pid_t pid) {
    const char state = state_of(pid);
    return state == 'T' || state == 'D';
}

// A listener on loopback with a port of its own.
struct Listener {
    UniqueFd socket;
    std::string address;

    Listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof name;
        REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
        REQUIRE(::listen(socket.get(), 4) == 0);
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
        address = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
    }
    // All that one peer said; empty: nobody came.
    std::string hear(int patience_ms) const {
        pollfd waiting{socket.get(), POLLIN, 0};
        if (::poll(&waiting, 1, patience_ms) != 1) return {};
        const UniqueFd peer(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::string heard;
        char buffer[256];
        for (ssize_t got = 0; (got = ::read(peer.get(), buffer, sizeof buffer)) > 0;) {
            heard.append(buffer, static_cast<std::size_t>(got));
        }
        return heard;
    }
};

}  // namespace

TEST_CASE("RDZV-7: without a later lease the keeper freezes every tree, and a later one thaws it") {
    FakeAgent agent;
    agent.send(Lease{in(300ms), nanoseconds(60s)});
    agent.spawn_shell(0, "(setsid sh -c 'echo $$; sleep 60') & wait");
    const pid_t worker = agent.started(0);
    agent.await_output(0, "\n");
    CHECK(eventually([&] { return is_frozen(worker); }));
    for (const pid_t pid : living_with_mark(agent.mark())) {
        if (pid != agent.keeper()) CHECK(eventually([&] { return is_frozen(pid); }));
    }
    agent.send(Lease{in(60s), nanoseconds(60s)});
    CHECK(eventually([&] { return !is_frozen(worker); }));
}

TEST_CASE("a lease that is renewed in time freezes nobody; one that is called off neither") {
    FakeAgent agent;
    agent.spawn_shell(0, "sleep 60");
    const pid_t worker = agent.started(0);
    for (int time = 0; time < 10; ++time) {
        agent.send(Lease{in(200ms), nanoseconds(60s)});
        CHECK_FALSE(agent.comes<Exited>(40ms));
        CHECK_FALSE(is_frozen(worker));
    }
    agent.send(Lease{});
    CHECK_FALSE(agent.comes<Exited>(400ms));
    CHECK_FALSE(is_frozen(worker));
}

TEST_CASE("what the agent froze is not thawed by a lease") {
    FakeAgent agent;
    agent.spawn_shell(0, "sleep 60");
    const pid_t worker = agent.started(0);
    agent.send(Suspend{true});
    (void)agent.expect<Suspended>();
    agent.send(Lease{in(60s), nanoseconds(60s)});
    agent.send(Inspect{1, 0});
    (void)agent.expect<Inspected>();
    CHECK(eventually([&] { return is_frozen(worker); }));  // once it has been scheduled
    agent.send(Suspend{false});
    CHECK(eventually([&] { return !is_frozen(worker); }));
}

TEST_CASE("an agent that goes on after its lease has ended thaws nobody before the next lease") {
    FakeAgent agent;
    agent.spawn_shell(0, "sleep 60");
    const pid_t worker = agent.started(0);
    agent.send(Suspend{true});
    (void)agent.expect<Suspended>();
    agent.send(Lease{in(-10ms), nanoseconds(60s)});
    agent.send(Suspend{false});
    agent.send(Inspect{1, 0});
    (void)agent.expect<Inspected>();
    CHECK(eventually([&] { return is_frozen(worker); }));  // once it has been scheduled
    agent.send(Lease{in(60s), nanoseconds(60s)});
    CHECK(eventually([&] { return !is_frozen(worker); }));
}

TEST_CASE("a round that ended frozen leaves the next one its lease") {
    FakeAgent agent;
    agent.spawn_shell(0, "sleep 60");
    (void)agent.started(0);
    agent.send(Suspend{true});
    (void)agent.expect<Suspended>();
    agent.send(KillRound{1, 0});
    (void)agent.expect<RoundClear>();
    agent.send(Lease{in(300ms), nanoseconds(60s)});
    agent.spawn_shell(0, "sleep 60");
    const pid_t worker = agent.started(0);
    CHECK(eventually([&] { return is_frozen(worker); }));
}

TEST_CASE("an agent that stays silent for the grace has its workers killed") {
    FakeAgent agent;
    agent.spawn_shell(0, "trap '' TERM; sleep 60");
    (void)agent.started(0);
    agent.send(Lease{in(100ms), nanoseconds(200ms)});
    CHECK(agent.expect<Exited>().wait_status == SIGKILL);
    (void)agent.expect<RoundClear>();
}

TEST_CASE("RDZV-7a: the keeper's last words come once nothing of a dead agent's node is left") {
    const Listener server;
    const std::string mark = [&] {
        FakeAgent agent;
        agent.send(LastWords{server.address, "it is over\n"});
        agent.spawn_shell(0, "trap '' TERM; echo up; sleep 60");
        agent.await_output(0, "up");
        agent.link() = Link(-1);  // the agent is gone
        CHECK(server.hear(5000) == "it is over\n");
        CHECK(living_with_mark(agent.mark()).size() <= 1);  // the keeper itself
        return agent.mark();
    }();
    CHECK(eventually([&] { return living_with_mark(mark).empty(); }));
}

TEST_CASE("last words that nobody takes end within their limit") {
    CHECK_FALSE(ddrun::detail::send_last_words("127.0.0.1:1", "x", 500ms));
    CHECK_FALSE(ddrun::detail::send_last_words("", "x", 500ms));
    CHECK_FALSE(ddrun::detail::send_last_words("no:such:thing", "x", 500ms));
    const Listener silent;  // accepts in the kernel, never reads, never closes
    const auto began = std::chrono::steady_clock::now();
    (void)ddrun::detail::send_last_words(silent.address, "x", 300ms);
    CHECK(std::chrono::steady_clock::now() - began < 5s);
}
