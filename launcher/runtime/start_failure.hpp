#pragma once

#include "launcher/core/worker_group.hpp"

#include <string>

namespace ddrun::launcher {

struct StartAttempt {
    std::string program;  // argv[0] of the worker
    int started = 0;      // workers of the round that run by now
    int wanted = 0;
};
// A worker that could not be started, in words: for exec the whole look-up, for everything else how
// far the round had come and the limit that was met: "started 47 of 256: fork: Resource temporarily
// unavailable (RLIMIT_NPROC=50, pids.max=...)".
[[nodiscard]] WorkerNotStarted describe_start_failure(int local_rank, const std::string& stage,
                                                      int error_number,
                                                      const StartAttempt& attempt);

}  // namespace ddrun::launcher
