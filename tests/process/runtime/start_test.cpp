// The steps before the first worker: each refuses in words, with the right code, and leaves
// nothing.
#include "launcher/runtime/cpu_topology.hpp"
#include "launcher/runtime/line_prefix.hpp"
#include "launcher/runtime/machine_facts.hpp"
#include "launcher/runtime/master_port.hpp"
#include "launcher/runtime/program_lookup.hpp"
#include "launcher/runtime/refusal.hpp"
#include "launcher/runtime/run_logs.hpp"
#include "tests/support/catch.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

class Folder {
  public:
    Folder() {
        std::string path = "/tmp/ddrun_test_XXXXXX";
        REQUIRE(::mkdtemp(path.data()) != nullptr);
        path_ = path;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }
    [[nodiscard]] const std::string& path() const { return path_; }
    std::string file(const std::string& name, const std::string& text, mode_t mode) const {
        std::ofstream(*this / name) << text;
        ::chmod((*this / name).c_str(), mode);
        return *this / name;
    }

  private:
    std::string path_;
};

struct Refused {
    int code = 0;
    std::string words;
};
template <typename Step>
Refused refused(Step step) {
    try {
        step();
    } catch (const Refusal& refusal) {
        return {refusal.exit_code, refusal.what()};
    }
    return {};
}

Refused look_up(const std::string& program, ProgramKind kind = ProgramKind::automatic) {
    JobSpec spec;
    spec.program = program;
    spec.kind = kind;
    return refused([&] { require_program(spec, read_machine_facts(spec, own_environment())); });
}

// A socket listening on 127.0.0.1, as a left-over job would.
class Listener {
  public:
    Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(::listen(socket_, 1) == 0);
        socklen_t size = sizeof address;
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
    }
    ~Listener() { ::close(socket_); }
    [[nodiscard]] int port() const { return port_; }

  private:
    int socket_;
    int port_ = 0;
};

}  // namespace

TEST_CASE("EXIT-8: a program that is not there is 127, one that cannot be executed 126") {
    const Folder folder;
    CHECK(look_up("sh").code == 0);
    CHECK(look_up("/bin/sh").code == 0);
    const Refused missing = look_up("no-such-program");
    CHECK(missing.code == 127);
    CHECK_THAT(missing.words, Contains("'no-such-program'") && Contains("PATH was searched"));
    const Refused path = look_up(folder / "nothing");
    CHECK(path.code == 127);
    CHECK_THAT(path.words, Contains(folder / "nothing") && Contains("PATH was not searched"));
    const Refused plain = look_up(folder.file("plain", "text", 0644));
    CHECK(plain.code == 126);
    CHECK_THAT(plain.words, Contains("chmod +x"));
    CHECK(look_up(folder.path()).code == 126);
    CHECK(look_up(folder.file("file", "", 0755) + "/below").code == 127);
}

TEST_CASE("EXIT-8: the program is looked up in the workers' PATH, which --env may set") {
    const Folder folder;
    folder.file("tool-of-the-job", "#!/bin/sh\n", 0755);
    JobSpec spec;
    spec.program = "tool-of-the-job";
    const MachineFacts facts = read_machine_facts(spec, own_environment());
    CHECK(refused([&] { require_program(spec, facts); }).code == 127);
    spec.extra_env = {{"PATH", "/nowhere"}, {"PATH", folder.path()}};
    CHECK(refused([&] { require_program(spec, facts); }).code == 0);
    spec.program = "sh";
    CHECK(refused([&] { require_program(spec, facts); }).code == 127);
}

TEST_CASE("EXIT-8: the interpreter of a script is looked up as the kernel will") {
    const Folder folder;
    CHECK(look_up(folder.file("good", "#! /bin/sh -e\n", 0755)).code == 0);
    const Refused windows = look_up(folder.file("windows", "#!/bin/sh\r\necho\r\n", 0755));
    CHECK(windows.code == 127);
    CHECK_THAT(windows.words, Contains("interpreter '/bin/sh\\r' not found"));
    CHECK(look_up(folder.file("gone", "#!/no/such/interpreter", 0755)).code == 127);
}

TEST_CASE("EXIT-8: a Python script has to be readable, not executable") {
    const Folder folder;
    const std::string script = folder.file("train.py", "pass\n", 0644);
    CHECK(look_up(script).code == 0);
    CHECK(look_up(script, ProgramKind::execute).code == 126);
    CHECK(look_up(folder / "gone.py").code == 127);
}

TEST_CASE("PORT-1: a free port is found where none is asked for, and two are never the same") {
    const MasterPort one = MasterPort::reserve(std::nullopt, "127.0.0.1");
    const MasterPort two = MasterPort::reserve(std::nullopt, "127.0.0.1");
    CHECK(one.number() > 0);
    CHECK(one.number() != two.number());
}

TEST_CASE("PORT-1: a taken port is refused with 71, naming it and its holder") {
    const Listener holder;
    const Refused taken = refused([&] { (void)MasterPort::reserve(holder.port(), "127.0.0.1"); });
    CHECK(taken.code == 71);
    CHECK_THAT(taken.words, Contains("127.0.0.1:" + std::to_string(holder.port())) &&
                                Contains("Address already in use"));
}

TEST_CASE("PORT-2: two jobs with one explicit port: the second is refused") {
    const MasterPort first = MasterPort::reserve(std::nullopt, "127.0.0.1");
    CHECK(refused([&] { (void)MasterPort::reserve(first.number(), "127.0.0.1"); }).code == 71);
}

TEST_CASE("rank 0 can listen on the reserved port, on either family") {
    const MasterPort port = MasterPort::reserve(std::nullopt, "127.0.0.1");
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port.number()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CHECK(::listen(socket, 1) == 0);
    ::close(socket);
}

TEST_CASE(
    "LOG-8: an explicit directory that cannot be used is a usage error naming path and reason") {
    const Folder folder;
    JobSpec spec;
    spec.log_dir = folder.file("file", "", 0644) + "/logs";
    const Refused bad = refused([&] { RunLogs(spec, "node", "job", "0123456789ab"); });
    CHECK(bad.code == 2);
    CHECK_THAT(bad.words, Contains("--log-dir " + *spec.log_dir) && Contains("Not a directory"));
}

TEST_CASE("LOG-8: runs, attempts, nodes and ranks each have a place of their own") {
    const Folder folder;
    JobSpec spec;
    spec.log_dir = folder / "deep/logs";
    RunLogs logs(spec, "node", "my/job", "0123456789abcdef");
    CHECK(logs.begin_attempt(1, 4, 2) == *spec.log_dir + "/my_job_01234567/attempt_1/node");
    ddrun::launcher::WorkerPlan worker;
    worker.rank = 5;
    worker.local_rank = 1;
    const StreamPlan out = logs.plan_stream(worker, Streams::out, 1);
    CHECK(out.file == *spec.log_dir + "/my_job_01234567/attempt_1/node/5/stdout.log");
    CHECK(out.to_console);  // --log-dir alone keeps and shows everything
    CHECK(std::filesystem::is_directory(*spec.log_dir + "/my_job_01234567/attempt_1/node/5"));
}

TEST_CASE("--redirects takes a stream from the console only where a file has it") {
    const Folder folder;
    JobSpec spec;
    spec.log_dir = folder.path();
    spec.redirects.ranges = {{{0, 0}, Streams::out}};
    spec.tee.ranges = {{{1, 1}, Streams::both}};
    ddrun::launcher::WorkerPlan zero;
    ddrun::launcher::WorkerPlan one;
    one.rank = one.local_rank = 1;
    RunLogs logs(spec, "node", "job", "0123456789abcdef");
    CHECK(logs.plan_stream(zero, Streams::out, 0).to_console);  // no attempt has begun: no file
    (void)logs.begin_attempt(0, 0, 2);
    CHECK_FALSE(logs.plan_stream(zero, Streams::out, 0).to_console);
    CHECK(logs.plan_stream(zero, Streams::err, 0).file.empty());
    CHECK(logs.plan_stream(zero, Streams::err, 0).to_console);
    CHECK(logs.plan_stream(one, Streams::err, 0).to_console);
    CHECK_FALSE(logs.plan_stream(one, Streams::err, 0).file.empty());
}

TEST_CASE("the default prefix is the rank; colours differ between neighbours") {
    const JobSpec spec;
    PrefixValues values;
    values.rank = 7;
    CHECK(render_line_prefix(spec, values, false) == "[7] ");
    const std::string seven = render_line_prefix(spec, values, true);
    CHECK_THAT(seven, Contains("[7] ") && Contains("\x1b["));
    JobSpec off;
    off.line_prefix = "";
    CHECK(render_line_prefix(off, values, true).empty());
}

TEST_CASE("CPU lists are read as the kernel writes them") {
    CHECK(parse_cpu_list("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
    CHECK(parse_cpu_list("5") == std::vector<int>{5});
    CHECK(parse_cpu_list("").empty());
    CHECK(parse_cpu_list("\n").empty());
    CHECK(parse_cpu_list("x").empty());
}
