#pragma once

#include "launcher/core/worker_plan.hpp"

#include <string>
#include <vector>

namespace ddrun::launcher {

// "0-3,8" as the kernel writes it; anything malformed ends the list.
[[nodiscard]] std::vector<int> parse_cpu_list(const std::string& text);

// NUMA nodes, cores and L3 groups from /sys, and the NUMA node of each GPU in PCI order.
void read_cpu_topology(MachineFacts& facts);

}  // namespace ddrun::launcher
