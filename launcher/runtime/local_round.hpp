#pragma once

#include "launcher/runtime/arena_table.hpp"
#include "launcher/runtime/job.hpp"
#include "launcher/runtime/run_logs.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <string>
#include <vector>

namespace ddrun::launcher {

// What one round has at this node's edge: the plans of its workers, their shared memory. Ends with
// the round, so nothing of it can be met in a later one.
class LocalRound {
  public:
    LocalRound(const Job& job, RunLogs& logs, const rendezvous::RoundGranted& grant,
               const std::string& agent_socket);

    [[nodiscard]] const rendezvous::RoundGranted& grant() const { return grant_; }
    [[nodiscard]] const std::vector<WorkerPlan>& plans() const { return plans_; }

    // stdin, stdout and stderr of one worker: its ends, and ours with where they go.
    struct Pipes {
        std::vector<UniqueFd> worker_ends;
        WorkerStreams our_ends;
        int error_number = 0;     // not 0: none of them exists
        std::string failed_call;  // "pipe", "open /dev/null" ...
    };
    [[nodiscard]] Pipes open_pipes(int local_rank) const;

    ArenaTable arenas;

  private:
    const RunLogs& logs_;
    rendezvous::RoundGranted grant_;
    std::vector<WorkerPlan> plans_;
};

}  // namespace ddrun::launcher
