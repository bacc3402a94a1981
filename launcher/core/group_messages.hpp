#pragma once

#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// What a WorkerGroup is told and what it asks for. Workers are named by local rank.
namespace ddrun::launcher {

// --- events -------------------------------------------------------------------------------------

struct WorkerStarted {
    int local_rank = 0;
    int pid = 0;
};

// Nothing runs under this local rank. The shell, which knows what was refused and the errno, gives
// the sentence and the code: 126, 127 or 71.
struct WorkerNotStarted {
    int local_rank = 0;
    std::string words;
    int exit_code = exit_code::system_refused;
    int started = 0;  // workers of the round that were started before it
};

// Reaped by the keeper, `age` before now.
struct WorkerExited {
    int local_rank = 0;
    ExitStatus status;
    Duration age{};
};

// By a job-control signal, or continued.
struct WorkerStopped {
    int local_rank = 0;
    bool stopped = false;
};

// Left by a worker that has ended, and being killed: pid and command.
struct DescendantsFound {
    int local_rank = 0;
    std::vector<std::pair<int, std::string>> processes;
};

// No process of the round is left: the answer to KillTrees, after the WorkerExited of each worker.
struct TreesGone {};

// The other answer: this one outlived SIGKILL. -1: nobody knows whose it is.
struct ProcessStuck {
    int pid = 0;
    int local_rank = -1;
    std::string command;
    std::string held_by;  // "waiting in nfs_wait"; empty: unknown
};

// It wrote something, or said over its socket that it made progress (`step` < 0: that it is alive).
struct WorkerActive {
    int local_rank = 0;
    std::int64_t step = -1;
    bool by_output = false;
};

// The worker says that it ends because of another rank.
struct WorkerBlamed {
    int local_rank = 0;
    int rank = -1;
    std::string words;
};

struct WorkerSaidNeverRetry {
    int local_rank = 0;
    std::string words;
};

// The answer to InspectWorker.
struct HangEvidence {
    int local_rank = 0;
    std::string words;
};

// Stop everything: `signal` first, SIGKILL at the deadline.
struct StopGroup {
    int signal = 15;
};

// SIGKILL now (second Ctrl-C).
struct KillGroup {};

// Pass on USR1, USR2, WINCH ...; nothing follows from it.
struct ForwardSignal {
    int signal = 0;
};

struct Suspend {};  // Ctrl-Z
struct Resume {};   // fg

using GroupEvent =
    std::variant<WorkerStarted, WorkerNotStarted, WorkerExited, WorkerStopped, DescendantsFound,
                 TreesGone, ProcessStuck, WorkerActive, WorkerBlamed, WorkerSaidNeverRetry,
                 HangEvidence, StopGroup, KillGroup, ForwardSignal, Suspend, Resume>;

// --- actions for the shell ----------------------------------------------------------------------

// All of the round, in rank order.
struct StartWorkers {};

// To end or continue a worker: its whole process group. To pass a signal on: the worker alone,
// since helpers without a handler for it would die.
struct SignalWorkers {
    int signal = 0;
    std::vector<int> local_ranks;
    bool whole_group = true;
};

// SDK workers: should_stop() turns true.
struct TellWorkersToStop {
    int signal = 0;
    Duration grace{};
};

// SDK workers: end every wait, `rank` is gone.
struct TellWorkersAborted {
    int rank = -1;
    std::string words;
};

// SIGKILL to everything of the round, in any session. Answered by TreesGone or ProcessStuck; at
// once where nothing is left.
struct KillTrees {};

// This worker ended and the round goes on: kill what it left. Answered by DescendantsFound if
// anything.
struct CleanUpAfter {
    int local_rank = 0;
};

// State, wait channel, stack. Answered by HangEvidence.
struct InspectWorker {
    int local_rank = 0;
};

// SIGSTOP or SIGCONT to every tree.
struct SuspendWorkers {
    bool stop = true;
};

// One line for the console.
struct Note {
    std::string words;
    bool warning = false;
};

using GroupAction = std::variant<StartWorkers, SignalWorkers, TellWorkersToStop, TellWorkersAborted,
                                 KillTrees, CleanUpAfter, InspectWorker, SuspendWorkers, Note>;

// --- news for the Agent, which keeps them to itself ---------------------------------------------

// The round cannot go on; at most once a round. StopGroup follows.
struct GroupFailed {
    rendezvous::Cause cause;
};

// A process outlived SIGKILL. May follow GroupFailed.
struct NodeUnfit {
    rendezvous::Cause cause;
};

// A worker committed a new step.
struct StepReached {
    std::int64_t step = -1;
};

// Every worker exited 0; comes right before GroupGone.
struct GroupSucceeded {};

// Nothing of the round is left; exactly once, the last of all.
struct GroupGone {};

// All that a WorkerGroup says: actions and news.
using GroupOutput = std::variant<StartWorkers, SignalWorkers, TellWorkersToStop, TellWorkersAborted,
                                 KillTrees, CleanUpAfter, InspectWorker, SuspendWorkers, Note,
                                 GroupFailed, NodeUnfit, StepReached, GroupSucceeded, GroupGone>;

}  // namespace ddrun::launcher
