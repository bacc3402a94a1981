#pragma once

#include "launcher/core/agent.hpp"
#include "launcher/core/summary.hpp"
#include "launcher/keeper/keeper.hpp"
#include "launcher/runtime/cgroup.hpp"
#include "launcher/runtime/job.hpp"
#include "launcher/runtime/job_link.hpp"
#include "launcher/runtime/keeper_link.hpp"
#include "launcher/runtime/local_round.hpp"
#include "launcher/runtime/master_port.hpp"
#include "launcher/runtime/remote_job.hpp"
#include "launcher/runtime/run_logs.hpp"
#include "launcher/runtime/signal_watch.hpp"
#include "launcher/runtime/status_file.hpp"
#include "launcher/runtime/worker_link.hpp"
#include "launcher/runtime/worker_output.hpp"
#include "rendezvous/server/store_front.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace ddrun::launcher {

// The control thread: turns what happens into events, gives them to the agent's core or, through
// the link, to the job, performs each action with one call, and owns the one timer that says when
// to ask them again. Decides nothing about the job.
class AgentRunner {
  public:
    AgentRunner(const Job& job, const std::optional<RemoteJob>& remote, RunLogs& logs,
                const MasterPort& port, keeper::KeeperProcess keeper);

    // Runs the job until nothing of it is left; ddrun's exit code. Blocks.
    [[nodiscard]] int run();

  private:
    struct WorkerAsks {
        int rank = 0;
        rendezvous::FromWorker request;
    };
    using Event = std::variant<AgentEvent, rendezvous::ToCoordinator, WorkerAsks>;

    [[nodiscard]] std::unique_ptr<JobLink> make_link(const std::optional<RemoteJob>& remote,
                                                     int master_port);
    [[nodiscard]] JobLink::Ears ears();
    void hold_lease(TimePoint until);

    // What happened outside.
    void signal_arrived(const ReceivedSignal& received);
    void keeper_said(const keeper::FromKeeper& message);
    void keeper_gone();
    void worker_said(int local_rank, rendezvous::FromWorker message);
    void output_seen(int round, int local_rank);
    void log_failed(const std::string& path, const std::string& words);
    void reap_children();
    void wake_keeper();

    // From the keeper; those of an older round are too late to matter.
    [[nodiscard]] bool is_current(int round) const;
    void on(const keeper::Spawned& message);
    void on(const keeper::NotSpawned& message);
    void on(const keeper::Exited& message);
    void on(const keeper::StoppedOrContinued& message);
    void on(const keeper::LeftBehind& message);
    void on(const keeper::RoundClear& message);
    void on(const keeper::Stuck& message);
    void on(const keeper::Inspected& message);
    void on(const keeper::Suspended& message);

    // Events wait in a queue, so that one made while acting is handled after the act.
    void happen(Event event);
    void handle_all();
    void handle(AgentEvent& event);
    void handle(rendezvous::ToCoordinator& message);
    void handle(WorkerAsks& asks);
    void perform(const Agent::Actions& actions);
    void advance();
    void set_timer();
    void log_states();  // at -vv, when they changed
    // A line of ddrun's own, between whole lines of the workers.
    void say(const std::string& words);

    // One action, one call.
    void act(const Say& action);
    void act(const BeginRound& action);
    void act(const EndRound& action);
    void act(const SuspendSelf& action);
    void suspend_self();
    void act(const Finish& action);
    void act(const GroupAction& action);
    void act(const StartWorkers& action);
    void act(const SignalWorkers& action);
    void act(const TellWorkersToStop& action);
    void act(const TellWorkersAborted& action);
    void act(const KillTrees& action);
    void act(const CleanUpAfter& action);
    void act(const InspectWorker& action);
    void act(const Note& action);
    void act(const SuspendWorkers& action);

    [[nodiscard]] std::optional<KeeperLink::Frame> spawn_frame(int round, int local_rank);
    void start_failed(int local_rank, const std::string& stage, int error_number);
    void serve_store(const rendezvous::RoundGranted& grant);

    // After Finish.
    void watch_output();
    void output_finished();
    void leave_if_impatient() const;
    void conclude();
    void hurry_keeper();
    void stop_when_all_gone();
    void say_summary();
    [[nodiscard]] SummaryFacts summary_facts();
    [[nodiscard]] TimePoint time_of_cause() const;
    [[nodiscard]] std::string log_path_of_cause() const;
    void publish_status();

    const Job& job_;
    RunLogs& logs_;
    boost::asio::io_context io_{1};
    boost::asio::steady_timer timer_{io_};
    boost::asio::steady_timer output_timer_{io_};
    boost::asio::steady_timer keeper_timer_{io_};
    std::optional<TimePoint> timer_set_for_;

    Agent agent_;
    std::unique_ptr<JobLink> link_;
    std::unique_ptr<LocalRound> round_;  // null between rounds
    std::deque<Event> events_;
    bool handling_ = false;

    SignalWatch signals_;
    WorkerLink workers_;
    KeeperLink keeper_;
    WorkerOutput output_;
    std::unique_ptr<StatusFile> status_;  // null unless asked for
    std::unique_ptr<rendezvous::StoreFront>
        store_front_;        // where rank 0 is, if the agent serves it
    int store_refused_ = 0;  // error number; 0: it was not

    std::optional<MemoryCounters> memory_at_start_;
    TimePoint round_began_{};
    int last_round_ = 0;
    int refused_ = 0;  // workers of this round that could not be started
    int suspends_under_way_ = 0;
    bool suspend_self_ = false;         // as soon as they are answered
    std::optional<int> keeper_status_;  // raw, when it ended by itself
    bool keeper_was_stopped_ = false;
    bool keeper_lost_ = false;
    std::string state_ = "starting";  // for the status file
    std::string logged_states_;
    std::optional<Finish> finish_;
    TimePoint finished_at_{};
    bool concluded_ = false;  // the summary is said
    bool output_done_ = false;
    bool link_closed_ = false;
};

}  // namespace ddrun::launcher
