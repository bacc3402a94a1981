#include "launcher/runtime/agent_runner.hpp"

#include "launcher/core/words.hpp"
#include "launcher/runtime/local_job_link.hpp"
#include "launcher/runtime/remote_job_link.hpp"
#include "launcher/runtime/run_agent.hpp"
#include "launcher/runtime/start_failure.hpp"
#include "rendezvous/platform/clock.hpp"
#include "rendezvous/platform/logging.hpp"
#include "rendezvous/platform/random.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>

namespace ddrun::launcher {
namespace {

using boost::system::error_code;

constexpr detail::Logger decisions("decisions");

// Helpers of a killed worker (Python's resource tracker) clean up when it is gone; then they are
// killed.
constexpr int helper_grace_ms = 200;

std::optional<TimePoint> earlier(std::optional<TimePoint> a, std::optional<TimePoint> b) {
    return !a ? b : !b ? a : std::min(*a, *b);
}

detail::LogLevel level_for(int verbosity) {
    constexpr int states = 2;
    if (verbosity < states) {
        return detail::LogLevel::off;
    }
    return verbosity == states ? detail::LogLevel::debug : detail::LogLevel::trace;
}

std::uint32_t milliseconds_of(Duration duration) {
    return static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

AgentRunner::AgentRunner(const Job& job, const std::optional<RemoteJob>& remote, RunLogs& logs,
                         const MasterPort& port, keeper::KeeperProcess keeper)
    : job_(job),
      logs_(logs),
      agent_(agent_rules(job, port.number())),
      link_(make_link(remote, port.number())),
      signals_(io_, watched_signals(job.spec.stop_signals, job.inherited),
               [this](const ReceivedSignal& received) { signal_arrived(received); }),
      workers_(io_, "ddrun-" + detail::random_hex_128(),
               {[this](int local_rank, rendezvous::FromWorker message) {
                    worker_said(local_rank, std::move(message));
                },
                [this](int local_rank) {
                    if (round_) {
                        link_->forget(round_->grant().round,
                                      round_->grant().first_rank + local_rank);
                    }
                }}),
      keeper_(io_, keeper,
              {[this](const keeper::FromKeeper& message) { keeper_said(message); },
               [this] { keeper_gone(); }}),
      output_(io_, {[this](int round, int local_rank) { output_seen(round, local_rank); },
                    [this](const std::string& path, const std::string& words) {
                        log_failed(path, words);
                    },
                    [this] {
                        if (finish_) {
                            conclude();
                        }
                    },
                    [this] { output_finished(); }}) {
    if (job.spec.status_file) {
        status_ = std::make_unique<StatusFile>(*job.spec.status_file);
        keeper_.send(keeper::Remove{{status_->temporary_path()}});
    }
}

int run_agent(const Job& job, const std::optional<RemoteJob>& remote, RunLogs& logs,
              const MasterPort& port, keeper::KeeperProcess keeper) {
    try {
        AgentRunner runner(job, remote, logs, port, keeper);
        return runner.run();
    } catch (const boost::system::system_error& error) {
        // The library's own kind of "the system refused".
        throw std::system_error(error.code(), "event loop");
    }
}

int AgentRunner::run() {
    detail::set_up_logging({level_for(job_.spec.verbosity),
                            [this](const std::string& line) { output_.relay().say(line); }});
    if (job_.spec.verbosity > 0) {
        act(Note{"job " + job_.job_id + ", incarnation " + job_.incarnation + ", " +
                 std::to_string(job_.slots) + " workers on " + job_.facts.node_name});
    }
    if (!logs_.directory().empty()) {
        act(Note{"log files are in " + logs_.directory()});
    }
    happen(AgentEvent(Started{}));
    io_.run();
    detail::set_up_logging({detail::LogLevel::off, {}});
    return finish_ ? finish_->exit_code : exit_code::internal_error;
}

void AgentRunner::say(const std::string& words) {
    output_.relay().say("ddrun: " + words);
}

// --- events to the cores ------------------------------------------------------------------------

void AgentRunner::happen(Event event) {
    events_.push_back(std::move(event));
    if (!handling_) {
        handle_all();
    }
}

void AgentRunner::handle_all() {
    handling_ = true;
    while (!events_.empty()) {
        Event event = std::move(events_.front());
        events_.pop_front();
        std::visit([this](auto& one) { handle(one); }, event);
    }
    handling_ = false;
    log_states();
    publish_status();
    set_timer();
}

void AgentRunner::log_states() {
    if (!detail::logs(detail::LogLevel::debug)) {
        return;
    }
    std::string states = "agent: " + agent_.describe() + "; job: " + link_->describe();
    if (states != logged_states_) {
        decisions.debug(states);
        logged_states_ = std::move(states);
    }
}

void AgentRunner::handle(AgentEvent& event) {
    perform(agent_.step(event, detail::now()));
}

void AgentRunner::handle(rendezvous::ToCoordinator& message) {
    link_->say(message);
}

void AgentRunner::handle(WorkerAsks& asks) {
    if (round_) {
        link_->ask(round_->grant().round, asks.rank, std::move(asks.request));
    }
}

void AgentRunner::perform(const Agent::Actions& actions) {
    for (const AgentAction& action : actions) {
        std::visit([this](const auto& one) { act(one); }, action);
    }
}

JobLink::Ears AgentRunner::ears() {
    JobLink::Ears ears;
    ears.hear = [this](rendezvous::FromCoordinator message) {
        happen(AgentEvent(std::move(message)));
    };
    ears.answer = [this](int round, int rank, const rendezvous::ToWorker& reply) {
        if (is_current(round)) workers_.send(rank - round_->grant().first_rank, reply);
    };
    ears.fence = [this](const rendezvous::Fence& fence) {
        using rendezvous::FenceStep;
        const auto step = fence.step == FenceStep::freeze ? FenceChanged::Step::freeze
                          : fence.step == FenceStep::thaw ? FenceChanged::Step::thaw
                                                          : FenceChanged::Step::kill;
        happen(AgentEvent(FenceChanged{step, fence.words}));
    };
    ears.lease_until = [this](TimePoint until) { hold_lease(until); };
    ears.last_words = [this](const std::string& address, std::string bytes) {
        keeper_.send(keeper::LastWords{address, std::move(bytes)});
    };
    ears.closed = [this] {
        link_closed_ = true;
        stop_when_all_gone();
    };
    return ears;
}

std::unique_ptr<JobLink> AgentRunner::make_link(const std::optional<RemoteJob>& remote,
                                                int master_port) {
    if (!remote) return std::make_unique<LocalJobLink>(job_rules(job_.spec), ears());
    return std::make_unique<RemoteJobLink>(io_, job_, *remote, agent_rules(job_, master_port).join,
                                           ears());
}

void AgentRunner::hold_lease(TimePoint until) {
    keeper::Lease lease;
    if (until != TimePoint::max()) {
        lease.until_ns = until.time_since_epoch().count();
        lease.grace_ns = job_.spec.rendezvous_grace.count();
    }
    keeper_.send(lease);
}

void AgentRunner::advance() {
    handling_ = true;
    const TimePoint now = detail::now();
    perform(agent_.advance_to(now));
    link_->advance_to(now);
    handle_all();
}

void AgentRunner::set_timer() {
    const auto next = earlier(agent_.next_deadline(), link_->next_deadline());
    if (finish_ || next == timer_set_for_) {
        return;
    }
    timer_set_for_ = next;
    if (!next) {
        timer_.cancel();
        return;
    }
    decisions.trace([&] { return "looking again in " + duration_text(*next - detail::now()); });
    timer_.expires_at(*next);
    timer_.async_wait([this](const error_code& error) {
        if (!error) {
            timer_set_for_.reset();
            advance();
        }
    });
}

// --- actions ------------------------------------------------------------------------------------

void AgentRunner::act(const Say& action) {
    happen(action.message);
}

void AgentRunner::act(const BeginRound& action) {
    round_ = std::make_unique<LocalRound>(job_, logs_, action.grant, workers_.address());
    link_->begin_round(action.grant);
    workers_.begin_round(action.grant.round, action.grant.first_rank, job_.slots);
    round_began_ = detail::now();
    last_round_ = action.grant.round;
    refused_ = 0;
    serve_store(action.grant);
    if (const std::string warning = logs_.take_warning(); !warning.empty()) {
        log_failed("log files", warning);
    }
}

// The store of this round's rank 0, empty, from before the first worker. On the address that all
// nodes are told; where that is a name, on all of this node's.
void AgentRunner::serve_store(const rendezvous::RoundGranted& grant) {
    store_refused_ = 0;
    if (!serves_agent_store(job_.spec) || grant.first_rank != 0) return store_front_.reset();
    if (store_front_) return store_front_->start_over();
    namespace ip = boost::asio::ip;
    boost::system::error_code is_name;
    const auto address = ip::make_address(grant.master_addr, is_name);
    const auto port = static_cast<ip::port_type>(grant.master_port);
    try {
        const auto everywhere = ip::tcp::endpoint(ip::tcp::v6(), port);
        store_front_ = std::make_unique<rendezvous::StoreFront>(
            io_, is_name ? everywhere : ip::tcp::endpoint(address, port));
    } catch (const boost::system::system_error& error) {
        store_refused_ = error.code().value();
    }
}

void AgentRunner::act(const EndRound& action) {
    workers_.end_round();
    if (store_front_) store_front_->start_over();
    link_->end_round(action.round);
    round_.reset();
    state_ = "waiting";
}

// The workers stop first: what they still print would come after the shell's prompt, and the
// terminal must be back with ddrun's own process group.
void AgentRunner::act(const SuspendSelf&) {
    if (suspends_under_way_ > 0 && !keeper_lost_) {
        suspend_self_ = true;
    } else {
        suspend_self();
    }
}

void AgentRunner::suspend_self() {
    stop_this_process();
    // Also when the kernel ignored the stop, because nobody could ever end it.
    happen(AgentEvent(SignalArrived{SIGCONT, 0, 0, false}));
}

void AgentRunner::on(const keeper::Suspended&) {
    if (--suspends_under_way_ == 0 && std::exchange(suspend_self_, false)) {
        suspend_self();
    }
}

void AgentRunner::act(const GroupAction& action) {
    std::visit([this](const auto& one) { act(one); }, action);
}

void AgentRunner::act(const StartWorkers&) {
    const int round = round_->grant().round;
    for (const WorkerPlan& plan : round_->plans()) {
        if (store_refused_ != 0) {
            start_failed(plan.local_rank, "listen at MASTER_PORT", store_refused_);
            continue;
        }
        keeper_.send(
            [this, round, local_rank = plan.local_rank] { return spawn_frame(round, local_rank); });
    }
    if (!memory_at_start_) {  // while the keeper is busy; no worker has run long enough to be
                              // killed
        memory_at_start_ = read_memory_counters();
    }
    state_ = "running";
}

void AgentRunner::act(const SignalWorkers& action) {
    keeper_.send(
        keeper::Signal{last_round_, action.signal, action.local_ranks, action.whole_group});
}

void AgentRunner::act(const TellWorkersToStop& action) {
    workers_.announce(rendezvous::StopRequested{action.signal, milliseconds_of(action.grace)});
    state_ = "stopping";
}

void AgentRunner::act(const TellWorkersAborted& action) {
    if (round_) {
        link_->abort_waits(round_->grant().round, action.words);
    }
    workers_.announce(rendezvous::RoundAborted{action.rank, action.words});
}

void AgentRunner::act(const KillTrees&) {
    keeper_.send(keeper::KillRound{last_round_, helper_grace_ms});
}

void AgentRunner::act(const CleanUpAfter& action) {
    keeper_.send(keeper::CleanUp{last_round_, action.local_rank});
}

void AgentRunner::act(const InspectWorker& action) {
    keeper_.send(keeper::Inspect{last_round_, action.local_rank});
}

void AgentRunner::act(const Note& action) {
    if (action.warning || job_.spec.verbosity >= 0) {
        say(action.words);
    }
}

void AgentRunner::act(const SuspendWorkers& action) {
    suspends_under_way_ += action.stop ? 1 : 0;
    keeper_.send(keeper::Suspend{action.stop});
}

// Runs when the frame's turn has come; a worker without pipes is one that could not be started.
std::optional<KeeperLink::Frame> AgentRunner::spawn_frame(int round, int local_rank) {
    if (!is_current(round)) {
        return std::nullopt;
    }
    LocalRound::Pipes pipes = round_->open_pipes(local_rank);
    if (pipes.error_number != 0) {
        start_failed(local_rank, pipes.failed_call, pipes.error_number);
        return std::nullopt;
    }
    output_.add_worker(std::move(pipes.our_ends));
    const WorkerPlan& plan = round_->plans()[static_cast<std::size_t>(local_rank)];
    return KeeperLink::Frame{
        keeper::encode(keeper::ToKeeper(keeper::Spawn{round, plan, job_.spec.strict_binding})),
        std::move(pipes.worker_ends)};
}

void AgentRunner::start_failed(int local_rank, const std::string& stage, int error_number) {
    const WorkerPlan& plan = round_->plans()[static_cast<std::size_t>(local_rank)];
    WorkerNotStarted failure = describe_start_failure(plan, stage, error_number);
    failure.started = local_rank - refused_++;  // workers start in rank order
    happen(AgentEvent(GroupEvent(std::move(failure))));
}

}  // namespace ddrun::launcher
