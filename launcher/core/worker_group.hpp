#pragma once

#include "launcher/core/early_exit_watch.hpp"
#include "launcher/core/group_messages.hpp"
#include "launcher/core/hang_watch.hpp"
#include "rendezvous/protocol/time.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

struct GroupRules {
    int first_rank = 0;
    int local_world_size = 1;
    // From the first stop signal to SIGKILL, once for all workers.
    Duration shutdown_timeout = std::chrono::seconds(30);
    // Nobody moves for so long: 124. Off by default.
    std::optional<Duration> hang_timeout;
    // The others may run on so long after the first exit 0: 124. Off by default.
    std::optional<Duration> early_exit_timeout;
    // After SIGKILL; a process that is still there makes the node unfit.
    Duration kill_patience = std::chrono::seconds(10);
    // A worker died by TERM, INT or HUP not sent by us: our own stop signal may be on its way.
    Duration foreign_stop_window = std::chrono::milliseconds(250);
    // "rank 2 finished (exit 0) 60 s ago, 3 still running"
    Duration early_notice_first = std::chrono::seconds(60);
    Duration early_notice_repeat = std::chrono::minutes(10);
    // What a finished worker left may end by itself.
    Duration leftover_delay = std::chrono::milliseconds(100);
    // How long a hang waits for evidence about its suspects.
    Duration inspect_patience = std::chrono::seconds(1);
};

// How a worker is, and how it ended: for decisions, the status file and the summary.
struct WorkerRecord {
    int rank = 0;
    int local_rank = 0;
    int pid = 0;           // 0: never started
    bool awaited = false;  // its start was asked for and not answered yet
    bool running = false;
    std::optional<ExitStatus> status;
    std::optional<TimePoint> ended_at;
    int signal_sent = 0;   // the signal of ddrun that ended it, as far as anybody can tell; 0: none
    int first_signal = 0;  // the first one sent to end it, and when
    std::optional<TimePoint> signalled_at;
    bool killed_after_grace = false;
    int forwarded_signal = 0;  // last USR1, USR2 ... that ddrun passed on; 0: none
    int blamed_rank = -1;      // it said that it ends because of this rank
    bool never_retry = false;  // it said so, or exited with 93
    std::string words;         // its own, or why it could not be started

    [[nodiscard]] bool lives() const { return running || awaited; }
};

// The workers of one round on one node: starting, watching, stopping, until no process of theirs is
// left. Decides; the keeper acts. Not thread-safe; no clock.
//
// States, each with what it waits for:
//   created     start()
//   running     workers asked for; none has failed
//   suspecting  nothing moves (--hang-timeout): evidence about the suspects, or a move
//   doubtful    a worker ended as if told to: our own stop signal, or a better cause
//   failed      GroupFailed was said: StopGroup
//   stopping    workers were signalled: their ends, or the deadline
//   clearing    KillTrees was said: TreesGone
//   unfit       NodeUnfit was said: nothing more, though TreesGone may still come
//   gone        GroupGone was said: nothing, every event is ignored
class WorkerGroup {
  public:
    using Actions = std::vector<GroupOutput>;

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
    void keeper_is_silent(TimePoint now);
    void look_around(TimePoint now);
    void notice_long_sleep(TimePoint now);
    void wake_workers(TimePoint now);
    static void note_signal(WorkerRecord& worker, int signal, TimePoint now);
    static void settle_signals(WorkerRecord& worker);

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
