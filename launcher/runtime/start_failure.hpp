#pragma once

#include "launcher/core/worker_group.hpp"
#include "launcher/core/worker_plan.hpp"

#include <string>

namespace ddrun::launcher {

// A worker that could not be started, in words: for exec the whole look-up of its program, for
// everything else the limit that was met: "fork: EAGAIN (Resource temporarily unavailable;
// RLIMIT_NPROC=50, pids.max=...)".
[[nodiscard]] WorkerNotStarted describe_start_failure(const WorkerPlan& worker,
                                                      const std::string& stage, int error_number);

}  // namespace ddrun::launcher
