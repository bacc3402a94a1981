// ddrun-rendezvous as its users meet it.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace ddrun::test;

namespace {

Invocation server_with(std::vector<std::string> flags) {
    Invocation invocation;
    invocation.argv = {std::string(DDRUN_BUILD_DIR) + "/rendezvous/ddrun-rendezvous"};
    for (std::string& flag : flags) invocation.argv.push_back(std::move(flag));
    invocation.env["DDRUN_SECRET"] = "a secret of this test only";
    invocation.unset = {"DDRUN_SECRET_FILE", "NOTIFY_SOCKET"};
    return invocation;
}

// "listening on 127.0.0.1:PORT, ..."
std::string port_of(Program& server) {
    REQUIRE(server.wait_for_output("listening on 127.0.0.1:", 5s));
    REQUIRE(server.wait_until([&] { return has(server.errors(), "\n"); }, 5s));
    const std::string before = "listening on 127.0.0.1:";
    const std::size_t at = server.errors().find(before) + before.size();
    return server.errors().substr(at, server.errors().find_first_not_of("0123456789", at) - at);
}

}  // namespace

TEST_CASE("wrong usage ends with 2 and says what to do") {
    const auto end = [](std::vector<std::string> flags) {
        return run(server_with(std::move(flags)), 5s);
    };
    CHECK(end({}).code == 2);
    CHECK(has(end({}).errors, "--listen"));
    CHECK(end({"--listen=node7"}).code == 2);
    CHECK(end({"--listen=127.0.0.1:0", "--secret-file=/does/not/exist"}).code == 2);
    CHECK(end({"--listen=127.0.0.1:0", "--nonsense"}).code == 2);
    CHECK(end({"--help"}).code == 0);
    CHECK(has(end({"--help"}).output, "usage: ddrun-rendezvous"));
    CHECK(end({"--version"}).output.rfind("ddrun-rendezvous ", 0) == 0);
}

TEST_CASE("a secret is needed, or --insecure") {
    const TemporaryDirectory home;
    Invocation invocation = server_with({"--listen=127.0.0.1:0"});
    invocation.env.erase("DDRUN_SECRET");
    invocation.unset.push_back("DDRUN_SECRET");
    invocation.unset.push_back("XDG_CONFIG_HOME");
    invocation.env["HOME"] = home.path();
    Invocation insecure = invocation;
    insecure.argv.push_back("--insecure");
    const auto end = run(std::move(invocation), 5s);
    if (end.code != -1) {  // where munge runs, that is a secret too
        CHECK(end.code == 2);
        CHECK(has(end.errors, "--insecure"));
    }
    Program server(std::move(insecure));
    CHECK(server.wait_for_output("without authentication or encryption", 5s));
}

TEST_CASE("an address that is taken ends with 71") {
    Program first(server_with({"--listen=127.0.0.1:0"}));
    const auto second = run(server_with({"--listen=127.0.0.1:" + port_of(first)}), 5s);
    CHECK(second.code == 71);
    CHECK(has(second.errors, "cannot listen on 127.0.0.1:" + port_of(first)));
    const auto foreign = run(server_with({"--listen=192.0.2.1"}), 5s);
    CHECK(foreign.code == 71);
    CHECK(has(foreign.errors, "192.0.2.1:29400"));
}

TEST_CASE("a signal ends it within a second, with 128 + s") {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        Program server(server_with({"--listen=127.0.0.1:0"}));
        (void)port_of(server);
        server.send_signal(signal);
        CHECK(server.wait(1s) == 128 + signal);
    }
}

TEST_CASE("it says nothing where all is well and --quiet") {
    Program server(server_with({"--listen=127.0.0.1:0", "--quiet"}));
    CHECK_FALSE(server.wait(300ms));
    server.send_signal(SIGTERM);
    CHECK(server.wait(1s) == 143);
    CHECK(server.errors().empty());
    CHECK(server.output().empty());
}

TEST_CASE("a service manager hears that it is ready") {
    const TemporaryDirectory directory;
    const bool abstract = GENERATE(false, true);
    const std::string name = abstract ? "@" + directory.file("notify") : directory.file("notify");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (abstract) address.sun_path[0] = '\0';
    const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
    Invocation invocation = server_with({"--listen=127.0.0.1:0"});
    invocation.unset = {"DDRUN_SECRET_FILE"};
    invocation.env["NOTIFY_SOCKET"] = name;
    Program server(std::move(invocation));
    const timeval limit{5, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::array<char, 64> buffer{};
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    REQUIRE(got > 0);
    CHECK(std::string(buffer.data(), static_cast<std::size_t>(got)) == "READY=1");
    ::close(socket);
}

TEST_CASE("a state file is made, read again, and never taken from somebody else") {
    const TemporaryDirectory directory;
    const std::string file = directory.file("state.json");
    {
        Program server(server_with({"--listen=127.0.0.1:0", "--state-file=" + file}));
        CHECK(server.wait_until([&] { return has(read_file(file), "\"jobs\":[]"); }, 5s));
    }
    write_file(file, R"({"version":1,"jobs":[{"job_id":"j","incarnation":"c","round":1,)"
                     R"("restarts_used":0}]})");
    {
        Program server(server_with({"--listen=127.0.0.1:0", "--state-file=" + file}));
        CHECK(server.wait_for_output("waiting for the nodes of 1 job", 5s));
    }
    write_file(file, "precious");
    const auto end = run(server_with({"--listen=127.0.0.1:0", "--state-file=" + file}), 5s);
    CHECK(end.code == 2);
    CHECK(has(end.errors, file));
    CHECK(read_file(file) == "precious");
}
