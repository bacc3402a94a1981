#pragma once

#include "launcher/core/job_spec.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/worker_env.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// What the machine offers, read once by the shell and passed in.
struct NumaNode {
    int id = 0;
    int socket = 0;
    std::vector<int> cpus;
};
struct MachineFacts {
    std::string node_name;
    std::vector<int> allowed_cpus;        // sched_getaffinity
    std::optional<int> cgroup_cpu_limit;  // quota rounded up; absent: none
    std::vector<NumaNode> numa_nodes;
    std::vector<std::vector<int>> cores;  // SMT siblings together
    std::vector<std::vector<int>> l3_groups;
    std::optional<int> device_nodes;  // count of /dev/nvidia[0-9]*; absent: no driver
    std::vector<int> gpu_numa_nodes;  // by device index; -1 unknown
    Variables environment;            // ddrun's own
    // Interpreter for .py and -m: $PYTHON_EXEC, else python3 or python of PATH. Empty: none is
    // needed.
    std::string python;
};

struct SlotDecision {
    int slots = 0;
    std::optional<int> visible_gpus;  // absent: this machine has none and nothing names any
    std::vector<std::string> warnings;
    std::string problem;  // not empty: usage error (2)
};
// Number of workers on this node, and whether it fits the machine: too few GPUs, a NUMA binding
// that makes workers share (a problem with --strict-binding). CUDA_VISIBLE_DEVICES is never parsed
// as integers except to cut the list at the first invalid entry.
[[nodiscard]] SlotDecision decide_slots(const JobSpec& spec, const MachineFacts& facts);

// Allowed CPUs, cut down to the cgroup's quota; at least 1.
[[nodiscard]] int usable_cpus(const MachineFacts& facts);

// Everything needed to start one worker, for the keeper.
struct WorkerPlan {
    int rank = 0;
    int local_rank = 0;
    std::vector<std::string> argv;   // argv[0] is looked up in PATH when it has no slash
    Variables environment;           // the complete environment of the worker
    std::vector<int> cpus;           // affinity; empty: inherited
    std::optional<int> memory_node;  // preferred NUMA node
    bool owns_stdin = false;
};

struct RoundFacts {  // what the runner knows about this round besides the grant
    std::string job_id;
    std::string incarnation;
    std::string agent_socket;
    std::string log_dir;  // of this round on this node; empty: none
    bool console_is_terminal = false;
    int local_world_size = 1;
};

[[nodiscard]] std::vector<WorkerPlan> plan_workers(const JobSpec& spec, const MachineFacts& facts,
                                                   const rendezvous::RoundGranted& grant,
                                                   const RoundFacts& round);

}  // namespace ddrun::launcher
