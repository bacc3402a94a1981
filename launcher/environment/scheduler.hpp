#pragma once

#include "rendezvous/protocol/worker_env.hpp"

#include <optional>
#include <string_view>

namespace ddrun::launcher {

// Who will kill this job some seconds after asking it to stop.
struct Scheduler {
    std::string_view name;      // "Slurm"
    std::string_view variable;  // that gave it away: "SLURM_JOB_ID"
};
[[nodiscard]] std::optional<Scheduler> find_scheduler(const Lookup& lookup);

}  // namespace ddrun::launcher
