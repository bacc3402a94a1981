#pragma once

#include "rendezvous/protocol/worker_env.hpp"

#include <optional>
#include <string>

namespace ddrun::launcher {

// What a pod knows about itself. Indexed Jobs and JobSets say their index; Kubeflow's PyTorchJob
// says RANK, WORLD_SIZE and MASTER_ADDR of nodes. (Its newer TrainJob speaks in PET_ variables,
// which are read with all others.)
struct PodFacts {
    int index = 0;
    std::string index_variable;       // "JOB_COMPLETION_INDEX"
    std::optional<int> node_count;    // PyTorchJob: WORLD_SIZE
    std::string first_host;           // the stable name of pod 0; empty: not known
    std::string first_host_variable;  // "HOSTNAME", "MASTER_ADDR"
};

struct PodReading {
    std::optional<PodFacts> facts;  // nothing: not such a pod, or not readable
    std::string problem;            // what is not usable, naming variable and value
};
// `own_name`: "train-3.train.ns.svc.cluster.local", or empty.
[[nodiscard]] PodReading read_pod(const Lookup& lookup, const std::string& own_name);

}  // namespace ddrun::launcher
