#pragma once

#include "launcher/core/agent.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// What the shell found out after the end; each absent fact is simply not mentioned.
struct SummaryFacts {
    std::string program;
    std::string node_name;
    int max_restarts = 0;
    // Of the root cause's worker.
    std::optional<Duration> uptime;
    std::vector<std::string>
        stderr_tail;       // last 20 lines of the root cause's stderr (stdout when stderr is empty)
    std::string log_path;  // of the root cause, or the log directory
    std::optional<std::int64_t> oom_kills;  // rise of the cgroup's oom_kill counter during the run
    std::optional<std::int64_t> memory_limit_bytes;
    std::optional<std::int64_t> memory_peak_bytes;
    std::optional<std::int64_t> shm_size_bytes;  // /dev/shm
    std::optional<std::int64_t> shm_used_bytes;
    std::string core_pattern;
    std::vector<std::string> dropped_output;  // "console: 120 lines", "/logs/0/stderr.log: 4096
                                              // bytes (No space left on device)"
};

// The root cause is a worker of this node, so that this node knows its output and its machine. Not
// decided by names: several nodes may share one.
[[nodiscard]] bool cause_was_here(const Finish& finish);

// The last lines on stderr: what happened, node, rank and local rank, pid, exit code or signal
// name, the tail, log path, one hint; then ranks that ddrun itself stopped. Empty for a plain
// success. Text only, no colour.
[[nodiscard]] std::string render_summary(const Finish& finish, const SummaryFacts& facts);

}  // namespace ddrun::launcher
