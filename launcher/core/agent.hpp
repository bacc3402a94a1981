#pragma once

#include "launcher/core/worker_group.hpp"
#include "rendezvous/protocol/job_messages.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

// This node's part in the job: joins, runs rounds as granted, reports, obeys stops, and ends with
// the verdict. Owns the WorkerGroup of the current round. Not thread-safe; no clock.
namespace ddrun::launcher {

struct AgentRules {
    GroupRules group;  // but for first_rank, which comes with each grant
    std::vector<int> stop_signals = {15, 2, 1, 3};
    std::vector<int> ignored_signals;  // inherited as ignored and kept so (HUP under nohup)
    std::string node_name;
    rendezvous::Join join;
    // A stop signal repeated within this time after the first one is the same request.
    Duration debounce = std::chrono::milliseconds(100);
};

// --- events -------------------------------------------------------------------------------------

// The keeper is up.
struct Started {};

struct SignalArrived {
    int signal = 0;
    int from_pid = 0;  // 0: the kernel, or a process outside our PID namespace
    int from_uid = 0;
    bool from_terminal = false;
};

// All workers are dead and reaped.
struct KeeperLost {
    std::string words;
};

// Contact to the job was lost or found again (rendezvous/core/node_link.hpp says when): another
// node may run this node's ranks, so its own workers must not.
struct FenceChanged {
    enum class Step {
        freeze,  // SIGSTOP to every tree; the time does not count towards any deadline
        thaw,    // the round still stands
        kill,    // it does not: SIGKILL now, frozen processes cannot answer anything else
    };
    Step step = Step::freeze;
    std::string words;  // why, one line for people
};

// The edge could not do something essential.
struct ShellFailed {
    int exit_code = exit_code::system_refused;
    std::string words;
};

// Group events must be of the current round: the shell drops those of an older one.
using AgentEvent = std::variant<Started, SignalArrived, KeeperLost, FenceChanged, ShellFailed,
                                rendezvous::FromCoordinator, GroupEvent>;

// --- actions ------------------------------------------------------------------------------------

struct Say {
    rendezvous::ToCoordinator message;
};

// Set up logs, store, sockets; StartWorkers follows.
struct BeginRound {
    rendezvous::RoundGranted grant;
};

// Everything of it is gone: close its logs, drop its store. Once for each BeginRound, before the
// next.
struct EndRound {
    int round = 0;
};

// Stop ddrun itself, as its workers are (Ctrl-Z).
struct SuspendSelf {};

// The job is over on this node, and the last action. The shell gathers facts (tails, memory,
// disks), renders the summary (summary.hpp) and exits with `exit_code`.
struct Finish {
    int exit_code = 0;
    std::optional<rendezvous::Cause> cause;
    std::vector<WorkerRecord> workers;  // of the last round on this node
    int restarts_used = 0;
    Duration shutdown_timeout{};  // the grace that stopped workers had
    std::string why_no_restart;   // set where the budget would have allowed another attempt
    std::string still_there;      // the process that makes this node unfit, in words; mostly empty
};

using AgentAction = std::variant<Say, BeginRound, EndRound, SuspendSelf, Finish, GroupAction>;

// States, each with what it waits for:
//   created  Started
//   idle     a grant or the verdict: joining, between two rounds, or done
//   in_round a round of this node: the end of its workers
//   unfit    a process outlives SIGKILL and that was reported: the verdict
//   over     nothing: Finish was said
// Being told to stop (`stop_`) is not a state: it may come in each of them and is never taken back.
// Nor is being fenced (`fenced_`), during which no worker of this node runs.
class Agent {
  public:
    using Actions = std::vector<AgentAction>;

    explicit Agent(AgentRules rules);

    [[nodiscard]] Actions step(const AgentEvent& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // Of the current round, or of the last one; null before the first.
    [[nodiscard]] const WorkerGroup* group() const { return group_ ? &*group_ : nullptr; }
    [[nodiscard]] std::string describe() const;

  private:
    enum class Phase { created, idle, in_round, unfit, over };
    struct Stop {  // the first stop signal
        int signal = 0;
        TimePoint at{};
        rendezvous::Cause cause;
    };

    void on(const Started& event, TimePoint now);
    void on(const SignalArrived& event, TimePoint now);
    void on(const KeeperLost& event, TimePoint now);
    void on(const FenceChanged& event, TimePoint now);
    void on(const ShellFailed& event, TimePoint now);
    void on(const rendezvous::FromCoordinator& event, TimePoint now);
    void on(const GroupEvent& event, TimePoint now);
    void on(const rendezvous::RoundGranted& grant, TimePoint now);
    void on(const rendezvous::StopRound& stop, TimePoint now);
    void on(const rendezvous::Verdict& verdict, TimePoint now);
    void on(const rendezvous::Parked& parked, TimePoint now);
    void on(const rendezvous::Notice& notice, TimePoint now);

    void stop_signal(const SignalArrived& event, TimePoint now);
    void first_stop(const SignalArrived& event, TimePoint now);
    void second_stop(const SignalArrived& event, TimePoint now);
    void tell_group(const GroupEvent& event, TimePoint now);
    void stop_group(int signal, TimePoint now);
    void lift_fence(TimePoint now);
    void take(WorkerGroup::Actions actions, TimePoint now);
    void group_gone(TimePoint now);
    void round_gone();
    void report(rendezvous::Cause cause);
    void note_attempt(const rendezvous::StopRound& stop, TimePoint now);
    void expect_verdict(rendezvous::Cause otherwise, TimePoint now);
    void finish(const rendezvous::Verdict& verdict);
    void finish(const rendezvous::Cause& cause);
    void end_round();
    [[nodiscard]] rendezvous::Cause located(rendezvous::Cause cause) const;
    [[nodiscard]] rendezvous::Cause stop_cause(const SignalArrived& event) const;

    AgentRules rules_;
    Phase phase_ = Phase::created;
    std::optional<WorkerGroup> group_;
    rendezvous::RoundGranted grant_{};
    TimePoint round_began_{};
    bool round_open_ = false;     // BeginRound was said, EndRound not yet
    bool reported_ = false;       // a failure of this round
    bool succeeded_ = false;      // this node's workers, in this round
    bool healthy_said_ = false;   // StepCommitted of this round
    bool round_stopped_ = false;  // StopRound came
    bool round_gone_said_ = false;
    bool fenced_ = false;
    bool asleep_ = false;  // by Ctrl-Z
    int restarts_used_ = 0;
    std::string still_there_;  // what NodeUnfit said, until it is gone after all
    std::optional<Stop> stop_;
    std::optional<rendezvous::Verdict> verdict_;  // came while workers were left
    // A coordinator that does not answer is not waited for: then the job ends with this.
    struct OwnEnd {
        TimePoint due{};
        rendezvous::Cause cause;
    };
    std::optional<OwnEnd> own_end_;
    Actions out_;
};

}  // namespace ddrun::launcher
