#pragma once

#include "launcher/core/early_exit_watch.hpp"
#include "launcher/core/hang_watch.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// The workers of one round on one node: starting, watching, stopping, until no process of theirs is
// left. Decides; the keeper acts.
namespace ddrun::launcher {

struct GroupRules {
    int first_rank = 0;
    int local_world_size = 1;
    Duration shutdown_timeout = std::chrono::seconds(30);
    std::optional<Duration> hang_timeout;
    std::optional<Duration> early_exit_timeout;
    Duration kill_patience = std::chrono::seconds(10);  // after SIGKILL; then the node is unfit
    Duration foreign_stop_window =
        std::chrono::milliseconds(250);  // worker died by TERM/INT/HUP not sent by us
    Duration early_notice_first = std::chrono::seconds(60);  // "rank 2 finished 60 s ago"
    Duration early_notice_repeat = std::chrono::minutes(10);
    Duration leftover_delay =
        std::chrono::milliseconds(100);  // what a finished worker left may end by itself
    Duration inspect_patience = std::chrono::seconds(1);  // for HangEvidence
};

// --- events -----------------------------------------------------------------------------------
struct WorkerStarted {
    int local_rank = 0;
    int pid = 0;
};
// Nothing runs under this local rank; `stage` is what was refused: "fork", "exec", "chdir",
// "affinity" ... `exit_code` 126, 127 or 71 and `words` come from the shell, which knows path and
// errno.
struct WorkerNotStarted {
    int local_rank = 0;
    int error_number = 0;
    std::string stage;
    std::string words;
    int exit_code = 71;
};
struct WorkerExited {
    int local_rank = 0;
    ExitStatus status;
    Duration age{};
};
struct WorkerStopped {
    int local_rank = 0;
    bool stopped = false;
};  // by a job-control signal / continued
struct DescendantsFound {
    int local_rank = 0;
    std::vector<std::pair<int, std::string>> processes;
};                    // pid, command; left by an ended worker, being killed
struct TreesGone {};  // no process of the round is left
struct ProcessStuck {
    int pid = 0;
    int local_rank = -1;
    std::string command;
    std::string wait_channel;
};
struct WorkerActive {
    int local_rank = 0;
    std::int64_t step = -1;
    bool by_output = false;
};
struct WorkerBlamed {
    int local_rank = 0;
    int rank = -1;
    std::string words;
};
struct WorkerSaidNeverRetry {
    int local_rank = 0;
    std::string words;
};
struct HangEvidence {
    int local_rank = 0;
    std::string words;
};  // answer to InspectWorker
// Stop everything; `signal` first (usually TERM), KILL at the deadline.
struct StopGroup {
    int signal = 15;
};
struct KillGroup {};  // second Ctrl-C: KILL now
struct ForwardSignal {
    int signal = 0;
};                  // USR1 ...; no consequence
struct Suspend {};  // ddrun was stopped by Ctrl-Z
struct Resume {};
using GroupEvent =
    std::variant<WorkerStarted, WorkerNotStarted, WorkerExited, WorkerStopped, DescendantsFound,
                 TreesGone, ProcessStuck, WorkerActive, WorkerBlamed, WorkerSaidNeverRetry,
                 HangEvidence, StopGroup, KillGroup, ForwardSignal, Suspend, Resume>;

// --- actions ----------------------------------------------------------------------------------
struct StartWorkers {};  // all of the round, in rank order
struct SignalWorkers {
    int signal = 0;
    std::vector<int> local_ranks;
};  // to their process groups
struct TellWorkersToStop {
    int signal = 0;
    Duration grace{};
};  // SDK: should_stop()
struct TellWorkersAborted {
    int rank = -1;
    std::string words;
};  // SDK: end every wait
struct KillTrees {
};  // SIGKILL to all, descendants in any session; answer TreesGone or ProcessStuck
struct CleanUpAfter {
    int local_rank = 0;
};  // worker ended, round goes on: kill what it left
struct InspectWorker {
    int local_rank = 0;
};  // stack, wait channel: answer HangEvidence
struct Note {
    std::string words;
    bool warning = false;
};  // one line for the console
struct GroupFailed {
    rendezvous::Cause cause;
};                         // the round cannot go on (first one only)
struct GroupSucceeded {};  // every worker exited 0
struct GroupGone {};       // nothing is left
struct StepReached {
    std::int64_t step = -1;
};  // a worker made progress
struct SuspendWorkers {
    bool stop = true;
};  // SIGSTOP / SIGCONT to every tree
struct NodeUnfit {
    rendezvous::Cause cause;
};  // a process outlived SIGKILL; may follow GroupFailed
// The shell performs the others; GroupFailed, GroupSucceeded, GroupGone, StepReached
// and NodeUnfit are for the Agent and never reach the shell.
using GroupAction = std::variant<StartWorkers, SignalWorkers, TellWorkersToStop, TellWorkersAborted,
                                 KillTrees, CleanUpAfter, InspectWorker, Note, GroupFailed,
                                 GroupSucceeded, GroupGone, StepReached, SuspendWorkers, NodeUnfit>;

// How each worker ended, for the summary.
struct WorkerRecord {
    int rank = 0;
    int local_rank = 0;
    int pid = 0;
    bool running = false;
    std::optional<ExitStatus> status;
    int signal_sent = 0;  // last signal ddrun sent to end it; 0: none
    bool killed_after_grace = false;
    int blamed_rank = -1;
    bool never_retry = false;
    std::string words;
    std::optional<TimePoint> ended_at;
    bool awaited = false;      // its start was asked for and not answered yet
    int forwarded_signal = 0;  // last USR1, USR2, WINCH ... that ddrun passed on; 0: none
    std::optional<TimePoint> signalled_at;  // when `signal_sent` was sent

    [[nodiscard]] bool lives() const { return running || awaited; }
};

// States, each with what it waits for:
//   created     start()
//   running     workers asked for; none has failed
//   suspecting  nothing moves (--hang-timeout): evidence about the suspects, or that one moves
//   again doubtful    a worker ended as if somebody had told it to: a stop signal of our own, or a
//   better cause failed      GroupFailed was said: StopGroup stopping    workers were signalled:
//   their ends, or the deadline clearing    KillTrees was said: TreesGone unfit       NodeUnfit was
//   said: nothing more, though TreesGone may still come gone        GroupGone was said: nothing,
//   every event is ignored
class WorkerGroup {
  public:
    using Actions = std::vector<GroupAction>;

    explicit WorkerGroup(GroupRules rules);

    [[nodiscard]] Actions start(TimePoint now);  // StartWorkers
    [[nodiscard]] Actions step(const GroupEvent& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    [[nodiscard]] const std::vector<WorkerRecord>& workers() const { return workers_; }
    [[nodiscard]] bool anyone_left() const;  // some worker was asked for and has not ended
    [[nodiscard]] std::string describe() const;

  private:
    enum class Phase {
        created,
        running,
        suspecting,
        doubtful,
        failed,
        stopping,
        clearing,
        unfit,
        gone
    };

    void on(const WorkerStarted& event, TimePoint now);
    void on(const WorkerNotStarted& event, TimePoint now);
    void on(const WorkerExited& event, TimePoint now);
    void on(const WorkerStopped& event, TimePoint now);
    void on(const DescendantsFound& event, TimePoint now);
    void on(const TreesGone& event, TimePoint now);
    void on(const ProcessStuck& event, TimePoint now);
    void on(const WorkerActive& event, TimePoint now);
    void on(const WorkerBlamed& event, TimePoint now);
    void on(const WorkerSaidNeverRetry& event, TimePoint now);
    void on(const HangEvidence& event, TimePoint now);
    void on(const StopGroup& event, TimePoint now);
    void on(const KillGroup& event, TimePoint now);
    void on(const ForwardSignal& event, TimePoint now);
    void on(const Suspend& event, TimePoint now);
    void on(const Resume& event, TimePoint now);

    [[nodiscard]] WorkerRecord* find(int local_rank);
    [[nodiscard]] std::vector<int> living() const;  // local ranks asked for and not ended
    [[nodiscard]] bool may_fail() const;            // running, suspecting or doubtful

    void worker_finished(const WorkerRecord& worker, TimePoint now);
    void worker_failed(const WorkerRecord& worker, TimePoint now);
    void suspect(std::vector<int> suspects, TimePoint now);
    void fail_hung(TimePoint now);
    void fail_early_exit(TimePoint now);
    void settle_doubt(TimePoint now);
    void fail(rendezvous::Cause cause, TimePoint now);
    void stop_workers(int signal, TimePoint now);
    void kill_trees(TimePoint now);
    void clean_up_leftovers(TimePoint now);
    void node_unfit(const std::string& words, const rendezvous::WorkerFailure& failure);
    void grace_is_over(TimePoint now);
    void keeper_is_silent();
    void look_around(TimePoint now);
    void notice_long_sleep(TimePoint now);
    void wake_workers(TimePoint now);

    struct Leftover {
        int local_rank = 0;
        TimePoint due{};
    };

    GroupRules rules_;
    Phase phase_ = Phase::created;
    std::vector<WorkerRecord> workers_;
    HangWatch hang_;
    EarlyExitWatch early_exit_;
    Actions out_;
    TimePoint deadline_{};               // of suspecting, doubtful, stopping and clearing
    int doubted_ = -1;                   // local rank, in doubtful
    std::vector<int> suspects_;          // in suspecting
    std::vector<std::string> evidence_;  // in suspecting
    std::vector<Leftover> leftovers_;    // of finished workers, by time
    std::vector<bool> leftovers_named_;
    bool failure_said_ = false;
    std::optional<TimePoint> suspended_at_;
};

}  // namespace ddrun::launcher
