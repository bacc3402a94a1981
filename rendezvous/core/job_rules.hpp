#pragma once

#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <vector>

namespace ddrun::rendezvous {

// What the job allows; the same on all nodes.
struct JobRules {
    int nodes = 1;
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
};

}  // namespace ddrun::rendezvous
