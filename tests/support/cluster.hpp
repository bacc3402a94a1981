#pragma once

#include "tests/support/hosts.hpp"
#include "tests/support/program.hpp"

#include <memory>
#include <string>
#include <vector>

// A job of several nodes: one ddrun on each of some hosts.
namespace ddrun::test {

// Skips (passes with a remark) where machines cannot be made.
#define DDRUN_NEEDS_HOSTS()                                           \
    if (const std::string why = Hosts::unavailable(); !why.empty()) { \
        WARN("skipped: " << why);                                     \
        return;                                                       \
    }

class Cluster {
  public:
    explicit Cluster(int count, Hosts::Addresses addresses = Hosts::Addresses::both)
        : hosts(count, addresses), jobs(static_cast<std::size_t>(count)) {}

    // What every node is given before the flags of start().
    std::vector<std::string> flags;
    std::string endpoint = Hosts::address(0) + ":29400";
    std::string secret = "a secret of this test only";

    [[nodiscard]] Invocation invocation(const std::vector<std::string>& more,
                                        const std::vector<std::string>& program) const {
        std::vector<std::string> words = {"--rdzv-endpoint=" + endpoint};
        words.insert(words.end(), flags.begin(), flags.end());
        words.insert(words.end(), more.begin(), more.end());
        words.insert(words.end(), program.begin(), program.end());
        Invocation invocation = ddrun_with(std::move(words));
        if (!secret.empty()) invocation.env["DDRUN_SECRET"] = secret;
        return invocation;
    }
    // The node's workers run a shell script.
    Program& start(int host, const std::string& script, const std::vector<std::string>& more = {}) {
        return start(host, invocation(more, {"sh", "-c", script}));
    }
    Program& start(int host, Invocation invocation) {
        auto& job = jobs[static_cast<std::size_t>(host)];
        job = std::make_unique<Program>(hosts.on(host, std::move(invocation)));
        return *job;
    }
    Program& on(int host) { return *jobs[static_cast<std::size_t>(host)]; }

    // -1: still running at the limit.
    int code(int host, Milliseconds limit) { return on(host).wait(limit).value_or(-1); }
    // Every node ended with this code and left nothing.
    bool all_end_with(int code, Milliseconds limit) {
        bool as_said = true;
        for (const auto& job : jobs) {
            if (!job) continue;
            as_said = job->wait(limit) == code && job->leaves_nothing(1s) && as_said;
        }
        return as_said;
    }
    [[nodiscard]] std::string said() const {  // for INFO
        std::string text;
        for (std::size_t host = 0; host < jobs.size(); ++host) {
            if (!jobs[host]) continue;
            text += "--- n" + std::to_string(host) + " stdout\n" + jobs[host]->output() +
                    "--- stderr\n" + jobs[host]->errors();
        }
        return text;
    }

    Hosts hosts;
    std::vector<std::unique_ptr<Program>> jobs;
};

}  // namespace ddrun::test
