#pragma once

#include "tests/support/program.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

// Machines for tests: network, host name and /etc/hosts of their own, on one switch. Made of
// namespaces that live as long as a process of the test, so nothing is left however it ends.
namespace ddrun::test {

class Hosts {
  public:
    enum class Addresses { both, ipv4_only, ipv6_only };

    // Host i is called "n<i>" and has 10.9.0.<i+1>/24 and fd00:9::<i+1>/64.
    explicit Hosts(int count, Addresses addresses = Addresses::both);
    ~Hosts();
    Hosts(const Hosts&) = delete;
    Hosts& operator=(const Hosts&) = delete;

    // Why machines cannot be made here; empty: they can. Tests skip with these words.
    [[nodiscard]] static std::string unavailable();

    [[nodiscard]] static std::string address(int host) {
        return "10.9.0." + std::to_string(host + 1);
    }
    [[nodiscard]] static std::string address6(int host) {
        return "fd00:9::" + std::to_string(host + 1);
    }

    // The same program, started there.
    [[nodiscard]] Invocation on(int host, Invocation invocation) const;
    // A shell command line there, awaited; throws when it fails.
    void command(int host, const std::string& line) const;

    void cut(int host) const;   // the cable is pulled: connections stay open and silent
    void heal(int host) const;  // and put back
    void rename(int host, const std::string& name) const;
    void write_hosts_file(int host, const std::string& text) const;

    // Every connection between these hosts goes out through here, so a rule can drop packets.
    [[nodiscard]] pid_t holder(int host) const { return machines_[at(host)].pid; }

  private:
    struct Machine {
        pid_t pid = -1;  // holds the namespaces
        std::string hosts_file;
    };
    static std::size_t at(int host) { return static_cast<std::size_t>(host); }
    void plug_in(int host, Addresses addresses);
    void on_switch(const std::string& line) const;

    TemporaryDirectory files_;
    Machine switch_;
    std::vector<Machine> machines_;
};

}  // namespace ddrun::test
