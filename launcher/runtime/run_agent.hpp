#pragma once

#include "launcher/keeper/keeper.hpp"
#include "launcher/runtime/job.hpp"
#include "launcher/runtime/master_port.hpp"
#include "launcher/runtime/remote_job.hpp"
#include "launcher/runtime/run_logs.hpp"

namespace ddrun::launcher {

// Runs the job on this node until nothing of it is left; ddrun's exit code. Blocks; starts the
// output thread. `remote` belongs to a job of several nodes. Signals are blocked by now
// (process_setup.hpp). Throws std::system_error before any worker was started.
[[nodiscard]] int run_agent(const Job& job, const std::optional<RemoteJob>& remote, RunLogs& logs,
                            const MasterPort& port, keeper::KeeperProcess keeper);

}  // namespace ddrun::launcher
