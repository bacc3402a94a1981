#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/core/worker_plan.hpp"

namespace ddrun::launcher {

// All of ddrun's own environment.
[[nodiscard]] Variables own_environment();

// What this machine offers, as far as `spec` needs it: the NUMA layout is read for --numa-binding
// only, an interpreter is looked for only where one runs. Starts nothing, loads nothing, asks no
// network.
[[nodiscard]] MachineFacts read_machine_facts(const JobSpec& spec, Variables environment);

}  // namespace ddrun::launcher
