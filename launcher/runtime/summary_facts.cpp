#include "launcher/runtime/summary_facts.hpp"

#include "launcher/runtime/small_file.hpp"

#include <sys/statvfs.h>

namespace ddrun::launcher {

void add_machine_facts(SummaryFacts& facts, const MemoryCounters& at_start) {
    const MemoryCounters now = read_memory_counters();
    if (now.oom_kills && at_start.oom_kills) {
        facts.oom_kills = *now.oom_kills - *at_start.oom_kills;
    }
    facts.memory_limit_bytes = now.limit_bytes;
    facts.memory_peak_bytes = now.peak_bytes;

    struct statvfs shm {};
    if (::statvfs("/dev/shm", &shm) == 0 && shm.f_blocks > 0) {
        const auto block = static_cast<std::int64_t>(shm.f_frsize);
        facts.shm_size_bytes = static_cast<std::int64_t>(shm.f_blocks) * block;
        facts.shm_used_bytes = static_cast<std::int64_t>(shm.f_blocks - shm.f_bfree) * block;
    }
    facts.core_pattern = read_small_file("/proc/sys/kernel/core_pattern");
    while (!facts.core_pattern.empty() && facts.core_pattern.back() == '\n') {
        facts.core_pattern.pop_back();
    }
}

}  // namespace ddrun::launcher
