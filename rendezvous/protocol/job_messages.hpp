#pragma once

#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

// What an agent and the coordinator of its job say to each other. On one machine these travel by
// function call, between machines as frames; the meaning is the same.
namespace ddrun::rendezvous {

// One worker's unhappy end, as seen by the keeper of its node.
struct WorkerFailure {
    int rank = 0;
    int local_rank = 0;
    int pid = 0;
    ExitStatus status;
    Duration age{};                   // how long before the report it happened
    bool signalled_by_ddrun = false;  // never a root cause
    int blamed_rank = -1;      // the worker said "aborted because of rank r"; never a root cause
    bool never_retry = false;  // the worker said so (exit 93)
    std::string reason;        // worker's own words, or why it could not be started; may be empty
    bool operator==(const WorkerFailure&) const = default;
};

// Ways in which a job ends or a round is stopped, other than by a worker's own exit.
enum class CauseKind {
    worker_failed,  // `failure` says which
    spawn_failed,   // exec or fork refused: `exit_code` 126, 127 or 71
    told_to_stop,   // a signal to ddrun; `exit_code` 128 + s
    hang,           // --hang-timeout
    early_exit,     // --early-exit-timeout
    node_unfit,     // a process outlived SIGKILL
    keeper_lost,    // the keeper of a node died
    never_formed,   // join time-out, refused
    node_lost,      // a node died or fell silent
    node_left,      // a node announced its leave and the job goes on without it
    membership,     // the group forms anew for a newcomer; nothing failed
};

// A worker ended badly or stood still; the other kinds are about the node or the job.
[[nodiscard]] constexpr bool is_about_workers(CauseKind kind) {
    switch (kind) {
        case CauseKind::worker_failed:
        case CauseKind::hang:
        case CauseKind::early_exit:
            return true;
        case CauseKind::spawn_failed:
        case CauseKind::told_to_stop:
        case CauseKind::node_unfit:
        case CauseKind::keeper_lost:
        case CauseKind::never_formed:
        case CauseKind::node_lost:
        case CauseKind::node_left:
        case CauseKind::membership:
            return false;
    }
    return false;
}

struct Cause {
    CauseKind kind = CauseKind::worker_failed;
    int exit_code = 0;
    int node_rank = 0;
    std::string node_name;
    WorkerFailure failure;  // meaningful for worker_failed, spawn_failed, hang, early_exit
    std::string words;      // one sentence for people
    bool operator==(const Cause&) const = default;
};

// --- agent to coordinator ---------------------------------------------------------------------
struct Join {
    std::string node_name;
    int slots = 1;
    int wished_node_rank = -1;         // -1: no wish
    std::string address;               // where rank 0 would listen
    int port = 0;                      // held bound by the agent
    bool hosts_endpoint = false;       // the job's endpoint is an address of this node
    std::string topology_group;        // nodes of one group get neighbouring ranks; empty: none
    std::string nccl_version;          // must be that of the other nodes; empty: not known
    std::uint64_t command_digest = 0;  // of program and arguments; another one is worth a warning
    bool operator==(const Join&) const = default;
};
struct FailureReport {  // something on this node ended the round; several failures may follow
    int round = 0;
    Cause cause;
    bool operator==(const FailureReport&) const = default;
};
struct RoundGone {  // no process of that round is left on this node
    int round = 0;
    bool operator==(const RoundGone&) const = default;
};
struct NodeDone {  // every worker of this node exited 0; the node waits for the verdict
    int round = 0;
    bool operator==(const NodeDone&) const = default;
};
struct StepCommitted {  // some worker reported progress: the round is healthy
    int round = 0;
    bool operator==(const StepCommitted&) const = default;
};
struct Leave {  // this node was told to stop by a signal
    Cause cause;
    bool operator==(const Leave&) const = default;
};
using ToCoordinator = std::variant<Join, FailureReport, RoundGone, NodeDone, StepCommitted, Leave>;

// --- coordinator to agent ---------------------------------------------------------------------
struct RoundGranted {
    int round = 1;
    int world_size = 1;
    int node_rank = 0;
    int node_count = 1;
    int first_rank = 0;
    int restart_count = 0;
    std::string master_addr;
    int master_port = 0;
    std::uint64_t digest = 0;  // of all placements of the round; the same on every node
    bool operator==(const RoundGranted&) const = default;
};
struct StopRound {  // stop every worker of `round`; answer RoundGone
    int round = 0;
    Cause cause;
    int restarts_used = 0;  // after this failure, when it is charged
    int max_restarts = 0;
    bool will_restart = false;
    Duration restart_delay{};    // from the moment everything is gone to the next grant
    std::string why_no_restart;  // set where the budget alone would have allowed one
    bool operator==(const StopRound&) const = default;
};
struct Verdict {  // the job is over; the same on every node
    int exit_code = 0;
    bool has_cause = false;
    Cause cause;
    int restarts_used = 0;
    std::string why_no_restart;  // as in StopRound
    bool operator==(const Verdict&) const = default;
};
struct Parked {  // this node is a spare until another one is lost
    bool operator==(const Parked&) const = default;
};
struct Notice {  // for the person who watches: who joined, who is missing, who is suspect
    std::string words;
    bool warning = false;
    bool operator==(const Notice&) const = default;
};
using FromCoordinator = std::variant<RoundGranted, StopRound, Verdict, Parked, Notice>;

}  // namespace ddrun::rendezvous
