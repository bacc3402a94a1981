#pragma once

#include "rendezvous/protocol/worker_env.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// What a Slurm job or step says about itself in its variables. A step's own variables count more
// than those of its job, which are inherited.
struct SlurmFacts {
    std::string job_id;              // of the whole job
    bool in_step = false;            // else in the batch script or in salloc's shell
    std::string step_id;             // of the step, where known
    int job_nodes = 1;               // of the whole allocation
    int restart_count = 0;           // requeues so far
    int node_count = 1;              // of the step, else of the job
    int node_id = 0;                 // of this node in the step
    std::vector<std::string> hosts;  // by node id; empty outside a step
    int tasks_here = 1;              // copies of this program on this node
    int task_here = 0;               // which of them this is

    // The same in every process of one run and in no other: "4711.0", after a requeue "4711.0-1".
    [[nodiscard]] std::string run_id() const;
};

struct SlurmReading {
    std::optional<SlurmFacts> facts;  // nothing: not under Slurm, or not readable
    std::string problem;              // what is not usable, naming variable, value and the way out
};
[[nodiscard]] SlurmReading read_slurm(const Lookup& lookup);

// "2(x3),1" is 2 2 2 1; empty: malformed, or more than 65,536.
[[nodiscard]] std::vector<int> expand_counts(std::string_view text);

}  // namespace ddrun::launcher
