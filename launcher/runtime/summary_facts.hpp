#pragma once

#include "launcher/core/summary.hpp"
#include "launcher/runtime/cgroup.hpp"

namespace ddrun::launcher {

// Adds what the machine knows about an unhappy end: memory counters against those of the start,
// /dev/shm, where core dumps go.
void add_machine_facts(SummaryFacts& facts, const MemoryCounters& at_start);

}  // namespace ddrun::launcher
