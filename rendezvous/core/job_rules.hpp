#pragma once

#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <vector>

namespace ddrun::rendezvous {

// What the job allows; the same on all nodes.
struct JobRules {
    int nodes = 1;      // the group is never larger
    int min_nodes = 0;  // the job goes on with so many; 0: all `nodes`
    int spares = 0;     // nodes beyond `nodes` that wait until one is needed
    // How long the group may be too small; how long a group that could start waits for more.
    Duration join_timeout = std::chrono::minutes(10);
    Duration last_call = std::chrono::seconds(30);
    int max_restarts = 0;            // charged per failure, job-wide
    std::vector<int> no_restart_on;  // worker exit codes (128 + s for a signal) that end the job
    int crash_loop = 0;              // K identical failures before `minimum_uptime`; 0: off
    // A round that lived this long, or committed a step, resets the backoff and the crash loop.
    Duration minimum_uptime = std::chrono::seconds(10);
    Duration backoff_first = std::chrono::seconds(1);  // delays: 0, first, 2 first ... limit
    Duration backoff_limit = std::chrono::seconds(30);
    Duration cause_window =
        std::chrono::milliseconds(200);  // wait for older reports of other nodes
    // Shortens each delay by up to a fifth, so that jobs that failed together do not come back
    // together. The shell draws it; 0: exact delays.
    std::uint64_t jitter_seed = 0;

    [[nodiscard]] int least_nodes() const { return min_nodes > 0 ? min_nodes : nodes; }
};

// What the nodes agreed on; `jitter_seed` is left to the caller.
[[nodiscard]] JobRules job_rules(const JobTerms& terms);

}  // namespace ddrun::rendezvous
