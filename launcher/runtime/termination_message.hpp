#pragma once

#include "launcher/core/worker_plan.hpp"

#include <string>

namespace ddrun::launcher {

// In a pod, leaves the last words where its status shows them (`kubectl describe pod`): in
// /dev/termination-log, which the kubelet puts there. Elsewhere, and where there is no such file,
// nothing is touched. Never fails: whoever ends has nobody left to tell.
void leave_termination_message(const Variables& environment, const std::string& summary,
                               int exit_code);

}  // namespace ddrun::launcher
