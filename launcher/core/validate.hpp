#pragma once

#include "launcher/core/job_spec.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Contradictions that no single value shows. Pure; one sentence per problem, naming the flag,
// variable or line of the job file, the value, and what would be right. Any problem is a usage
// error (2).
namespace ddrun::launcher {

// How to name an option ("nproc-per-node") in a sentence: "--nproc-per-node" or, say,
// "PET_NPROC_PER_NODE".
using NameOf = std::function<std::string(std::string_view option)>;

// Everything that can be judged from the specification alone; calls validate_ranks where the number
// of workers is given as a number.
[[nodiscard]] std::vector<std::string> validate(const JobSpec& spec, const NameOf& name_of);

// Ranks named by flags against the number of workers on this node; the shell calls it once
// auto, gpu or cpu is decided. Global ranks are checked on one node only, where they are the local
// ones.
[[nodiscard]] std::vector<std::string> validate_ranks(const JobSpec& spec, int local_world_size,
                                                      const NameOf& name_of);

}  // namespace ddrun::launcher
