#pragma once

#include "launcher/core/visible_devices.hpp"
#include "launcher/core/worker_plan.hpp"

#include <optional>
#include <string>
#include <vector>

// Which CPUs and which memory each worker of a node gets, from --numa-binding. Local rank i goes
// with visible GPU i and lives on that GPU's NUMA node; ranks whose GPU is unknown, and all ranks
// of a machine without GPUs, are spread over the NUMA nodes in blocks of neighbours.
//
//   node          all CPUs of the NUMA node
//   socket        all CPUs of the socket
//   exclusive     the cores of the NUMA node dealt out among its workers, SMT siblings together
//   core_complex  one group of CPUs that share an L3 cache, the largest first
namespace ddrun::launcher {

struct Placement {
    std::vector<int> cpus;           // sorted; empty: inherited
    std::optional<int> memory_node;  // preferred
};

// One placement per local rank. Only allowed CPUs are used; where they do not suffice for what was
// asked, workers share.
[[nodiscard]] std::vector<Placement> place_workers(NumaBinding binding, const MachineFacts& facts,
                                                   int workers,
                                                   const std::optional<VisibleDevices>& devices);

// Why workers have to share what should be theirs alone; empty when they need not.
[[nodiscard]] std::string binding_problem(NumaBinding binding, const MachineFacts& facts,
                                          int workers,
                                          const std::optional<VisibleDevices>& devices);

}  // namespace ddrun::launcher
