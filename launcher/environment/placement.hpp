#pragma once

#include "rendezvous/protocol/worker_env.hpp"

#include <string>
#include <vector>

namespace ddrun::launcher {

// What a scheduler says about this job, in the words of ddrun's options: what stands for flags that
// nobody gave.
struct Placement {
    struct Value {
        std::string option;    // "nnodes"
        std::string text;      // as it would be given
        std::string variable;  // whose value it is: "SLURM_STEP_NODELIST"
    };
    std::string scheduler;  // "Slurm", "Kubernetes"; empty: none is there
    std::vector<Value> values;
    int nodes = 0;           // nodes that are there for this job; 0: not known
    int copies_here = 1;     // of ddrun, started on this node for the same job
    std::string unreadable;  // why more is not known, naming variable and value
    std::string advice;      // one line for people: the job has more than this run will use
};

// `own_name`: this machine's full name as its hosts file has it, where there is one.
[[nodiscard]] Placement read_placement(const Lookup& lookup, const std::string& own_name);

// The full name that a pod with a stable name finds for itself in its /etc/hosts: the first name
// with a dot and `host_name` before it. Empty: none.
[[nodiscard]] std::string full_name_in_hosts_file(const std::string& text,
                                                  const std::string& host_name);

}  // namespace ddrun::launcher
