#pragma once

#include "launcher/core/worker_group.hpp"
#include "rendezvous/protocol/job_messages.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

// This node's part in the job: joins, runs rounds as granted, reports, obeys stops, and ends with the
// verdict. Owns the WorkerGroup of the current round.
// States: joining -> running -> stopping -> waiting (for a grant or the verdict) -> over.
namespace ddrun::launcher {

struct AgentRules {
    GroupRules group;                       // local_world_size is filled in; first_rank comes with the grant
    std::vector<int> stop_signals = {15, 2, 1, 3};
    std::vector<int> ignored_signals;       // inherited SIG_IGN that stays (HUP under nohup)
    std::string node_name;
    rendezvous::Join join;
    Duration debounce = std::chrono::milliseconds(100);  // a burst of the same stop signal is one
};

// --- events -----------------------------------------------------------------------------------
struct Started {};                                            // keeper is up
struct SignalArrived { int signal = 0; int from_pid = 0; int from_uid = 0; bool from_terminal = false; };
struct KeeperLost { std::string words; };                     // all workers are dead and reaped
struct ShellFailed { int exit_code = 71; std::string words; };  // the edge could not do something essential
using AgentEvent = std::variant<Started, SignalArrived, KeeperLost, ShellFailed, rendezvous::FromCoordinator, GroupEvent>;

// --- actions ----------------------------------------------------------------------------------
struct Say { rendezvous::ToCoordinator message; };
struct BeginRound { rendezvous::RoundGranted grant; };        // set up logs, store, sockets; then StartWorkers follows
struct EndRound { int round = 0; };                           // everything of it is gone: close its logs, drop its store
struct SuspendSelf {};                                        // stop ddrun itself after the workers (Ctrl-Z)
// The job is over and nothing of it is left. The shell gathers facts (tails, memory, disks), renders
// the summary (summary.hpp) and exits with `exit_code`.
struct Finish {
    int exit_code = 0;
    std::optional<rendezvous::Cause> cause;
    std::vector<WorkerRecord> workers;   // of the last round on this node
    int restarts_used = 0;
    Duration shutdown_timeout{};         // the grace that stopped workers had
};
using AgentAction = std::variant<Say, BeginRound, EndRound, SuspendSelf, Finish, GroupAction>;

class Agent {
  public:
    using Actions = std::vector<AgentAction>;

    explicit Agent(AgentRules rules);

    [[nodiscard]] Actions step(const AgentEvent& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    [[nodiscard]] const WorkerGroup* group() const;   // of the current round; null before the first
    [[nodiscard]] std::string describe() const;
};

}  // namespace ddrun::launcher
