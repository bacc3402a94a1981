#pragma once

#include "launcher/core/worker_plan.hpp"

#include <string>
#include <vector>

namespace ddrun::launcher {

// What --dry-run prints: what every worker has in its environment and ddrun has not, then per
// worker its RANK, its command quoted for a shell, the rest of its environment, and CPUs, memory
// node and stdin where they are set.
[[nodiscard]] std::string plan_text(const std::vector<WorkerPlan>& plan,
                                    const Variables& own_environment);

}  // namespace ddrun::launcher
