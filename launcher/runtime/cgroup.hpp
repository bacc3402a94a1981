#pragma once

#include <cstdint>
#include <optional>
#include <string>

// What the control group of ddrun allows and has seen; version 1, version 2 and both at once.
namespace ddrun::launcher {

// CPU quota rounded up to whole CPUs, the tightest of all levels that are visible; nullopt: none.
[[nodiscard]] std::optional<int> cgroup_cpu_limit();

// "pids.max=50", for messages; empty when there is no limit.
[[nodiscard]] std::string cgroup_pids_limit();

struct MemoryCounters {
    std::optional<std::int64_t> oom_kills;
    std::optional<std::int64_t> limit_bytes;
    std::optional<std::int64_t> peak_bytes;
};
[[nodiscard]] MemoryCounters read_memory_counters();

}  // namespace ddrun::launcher
