#include "tests/support/hosts.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace ddrun::test {
namespace {

constexpr int namespaces = CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS;

[[noreturn]] void refuse(const std::string& what) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
}

// In the child: becomes the holder of a machine, says so by one byte, and waits to be ended.
[[noreturn]] void hold(int ready, const std::string& name, const std::string& hosts_file) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool made = ::unshare(namespaces) == 0 && ::sethostname(name.c_str(), name.size()) == 0 &&
                ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (made && !hosts_file.empty()) {
        made = ::mount(hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
    }
    const char answer = made ? '+' : '-';
    if (::write(ready, &answer, 1) != 1) ::_exit(1);
    ::close(ready);
    while (made) ::pause();
    ::_exit(1);
}

pid_t start_holder(const std::string& name, const std::string& hosts_file) {
    int ready[2] = {-1, -1};
    if (::pipe2(ready, O_CLOEXEC) != 0) refuse("pipe2");
    const pid_t pid = ::fork();
    if (pid < 0) refuse("fork");
    if (pid == 0) hold(ready[1], name, hosts_file);
    ::close(ready[1]);
    char answer = '-';
    const auto got = ::read(ready[0], &answer, 1);
    ::close(ready[0]);
    if (got == 1 && answer == '+') return pid;
    ::waitpid(pid, nullptr, 0);
    throw std::runtime_error("a network namespace cannot be made here (root is needed)");
}

void end_holder(pid_t pid) {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

// Async-signal-safe but for the strings made before.
void enter(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        const int space = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (space < 0 || ::setns(space, 0) != 0) ::_exit(97);
        ::close(space);
    }
}

std::vector<std::string> paths_of(pid_t holder) {
    const std::string folder = "/proc/" + std::to_string(holder) + "/ns/";
    return {folder + "net", folder + "uts", folder + "mnt"};
}

void run_in(pid_t holder, const std::string& line) {
    Invocation invocation;
    invocation.argv = {"sh", "-e", "-c", line};
    invocation.before_exec = [paths = paths_of(holder)] { enter(paths); };
    const Finished end = run(std::move(invocation), 10s);
    if (end.code != 0) throw std::runtime_error(line + ": " + end.errors);
}

}  // namespace

std::string Hosts::unavailable() {
    static const std::string reason = [] {
        try {
            const Hosts trial(1);
            return std::string();
        } catch (const std::exception& error) {
            return std::string(error.what());
        }
    }();
    return reason;
}

Hosts::Hosts(int count, Addresses addresses) {
    try {
        switch_.pid = start_holder("switch", "");
        on_switch("ip link set lo up; ip link add br0 type bridge; ip link set br0 up");
        std::string names = "127.0.0.1 localhost\n::1 localhost\n";
        for (int host = 0; host < count; ++host) {
            names += (addresses == Addresses::ipv6_only ? address6(host) : address(host)) + " n" +
                     std::to_string(host) + "\n";
        }
        for (int host = 0; host < count; ++host) {
            Machine machine;
            machine.hosts_file = files_.file("hosts" + std::to_string(host));
            write_file(machine.hosts_file, names);
            machine.pid = start_holder("n" + std::to_string(host), machine.hosts_file);
            machines_.push_back(std::move(machine));
            plug_in(host, addresses);
        }
    } catch (...) {
        for (const Machine& machine : machines_) end_holder(machine.pid);
        end_holder(switch_.pid);
        throw;
    }
}

Hosts::~Hosts() {
    for (const Machine& machine : machines_) end_holder(machine.pid);
    end_holder(switch_.pid);
}

void Hosts::plug_in(int host, Addresses addresses) {
    const std::string port = "v" + std::to_string(host);
    on_switch("ip link add " + port + " type veth peer name e0 netns " +
              std::to_string(holder(host)) + "; ip link set " + port + " master br0 up");
    std::string line = "ip link set lo up; ip link set e0 up";
    if (addresses != Addresses::ipv6_only) line += "; ip addr add " + address(host) + "/24 dev e0";
    if (addresses != Addresses::ipv4_only) {
        line += "; ip -6 addr add " + address6(host) + "/64 dev e0 nodad";
    }
    command(host, line);
}

Invocation Hosts::on(int host, Invocation invocation) const {
    invocation.before_exec = [paths = paths_of(holder(host)), then = invocation.before_exec] {
        enter(paths);
        if (then) then();
    };
    return invocation;
}

void Hosts::command(int host, const std::string& line) const {
    run_in(holder(host), line);
}

void Hosts::on_switch(const std::string& line) const {
    run_in(switch_.pid, line);
}

void Hosts::cut(int host) const {
    on_switch("ip link set v" + std::to_string(host) + " down");
}

void Hosts::heal(int host) const {
    on_switch("ip link set v" + std::to_string(host) + " up");
}

void Hosts::rename(int host, const std::string& name) const {
    command(host, "hostname '" + name + "'");
}

void Hosts::write_hosts_file(int host, const std::string& text) const {
    write_file(machines_[at(host)].hosts_file, text);
}

}  // namespace ddrun::test
