#pragma once

#include "launcher/keeper/keeper.hpp"
#include "launcher/runtime/job.hpp"
#include "launcher/runtime/master_port.hpp"
#include "launcher/runtime/run_logs.hpp"

namespace ddrun::launcher {

// Runs the job on this node until nothing of it is left; ddrun's exit code. Blocks; starts the
// output thread. Signals are blocked by now (process_setup.hpp). Throws std::system_error before
// any worker was started.
[[nodiscard]] int run_agent(const Job& job, RunLogs& logs, const MasterPort& port,
                            keeper::KeeperProcess keeper);

}  // namespace ddrun::launcher
