#include "launcher/runtime/agent_runner.hpp"

#include "launcher/runtime/child.hpp"
#include "launcher/runtime/run_agent.hpp"
#include "launcher/runtime/start_failure.hpp"
#include "launcher/runtime/summary_facts.hpp"
#include "rendezvous/platform/clock.hpp"
#include "rendezvous/platform/random.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <type_traits>

namespace ddrun::launcher {
namespace {

using boost::system::error_code;

constexpr auto drain_patience = std::chrono::seconds(3);
constexpr auto keeper_patience = std::chrono::seconds(2);
constexpr int descendants_patience_ms = 5000;

// Helpers of a killed worker (Python's resource tracker) clean up when it is gone; then they are
// killed.
constexpr int helper_grace_ms = 200;

std::optional<TimePoint> earlier(std::optional<TimePoint> a, std::optional<TimePoint> b) {
    return !a ? b : !b ? a : std::min(*a, *b);
}

std::uint32_t milliseconds_of(Duration duration) {
    return static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

AgentRunner::AgentRunner(const Job& job, RunLogs& logs, const MasterPort& port,
                         keeper::KeeperProcess keeper)
    : job_(job),
      logs_(logs),
      agent_(agent_rules(job, port.number())),
      coordinator_(job_rules(job.spec)),
      signals_(io_, watched_signals(job.spec.stop_signals, job.inherited),
               [this](const ReceivedSignal& received) { signal_arrived(received); }),
      workers_(io_, "ddrun-" + detail::random_hex_128(),
               {[this](int local_rank, rendezvous::FromWorker message) {
                    worker_said(local_rank, std::move(message));
                },
                [this](int local_rank) {
                    if (round_) {
                        round_->store.forget(round_->grant().first_rank + local_rank);
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
                    }}),
      memory_at_start_(read_memory_counters()) {
    if (job.spec.status_file) {
        status_ = std::make_unique<StatusFile>(*job.spec.status_file);
        keeper_.send(keeper::Remove{{status_->temporary_path()}});
    }
}

int run_agent(const Job& job, RunLogs& logs, const MasterPort& port, keeper::KeeperProcess keeper) {
    AgentRunner runner(job, logs, port, keeper);
    return runner.run();
}

int AgentRunner::run() {
    publish_status("starting");
    if (logs_.is_temporary()) {
        act(Note{"log files are in " + logs_.directory()});
    }
    happen(AgentEvent(Started{}));
    io_.run();
    return finish_ ? finish_->exit_code : exit_code::internal_error;
}

void AgentRunner::say(const std::string& words) {
    output_.relay().say("ddrun: " + words);
}

// --- what happened outside ----------------------------------------------------------------------

void AgentRunner::signal_arrived(const ReceivedSignal& received) {
    if (received.signal == SIGCHLD) {
        return reap_children();
    }
    happen(AgentEvent(
        SignalArrived{received.signal, received.pid, received.uid, received.from_terminal}));
}

// As a subreaper, or as process 1 of a container, ddrun is given orphans that are nobody's workers.
void AgentRunner::reap_children() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == keeper_.pid()) {
            keeper_status_ = status;
        }
    }
}

void AgentRunner::keeper_said(const keeper::FromKeeper& message) {
    std::visit([this](const auto& one) { on(one); }, message);
}

void AgentRunner::keeper_gone() {
    keeper_lost_ = true;
    if (!keeper_status_) {
        keeper_status_ = reap_child(keeper_.pid(), keeper_patience);
    }
    if (concluded_) {
        return io_.stop();
    }
    // Workers have the keeper's end as their death signal; what they started is ours to end.
    const bool all_gone = keeper::end_all_descendants(0, descendants_patience_ms);
    output_.all_ended();
    std::string words = "the keeper (pid " + std::to_string(keeper_.pid()) + ") ended unexpectedly";
    if (keeper_status_) {
        words += ": " + ExitStatus::from_wait_status(*keeper_status_).describe();
    }
    happen(AgentEvent(
        KeeperLost{words + (all_gone ? "" : "; processes are left that SIGKILL does not end")}));
}

void AgentRunner::worker_said(int local_rank, rendezvous::FromWorker message) {
    if (!round_) {
        return;
    }
    if (const auto* progress = std::get_if<rendezvous::Progress>(&message)) {
        happen(AgentEvent(GroupEvent(WorkerActive{local_rank, progress->step, false})));
    } else if (const auto* aborted = std::get_if<rendezvous::AbortedBecause>(&message)) {
        happen(AgentEvent(GroupEvent(WorkerBlamed{local_rank, aborted->rank, aborted->words})));
    } else if (const auto* never = std::get_if<rendezvous::NeverRetry>(&message)) {
        happen(AgentEvent(GroupEvent(WorkerSaidNeverRetry{local_rank, never->words})));
    } else if (const auto* arena = std::get_if<rendezvous::ArenaOpen>(&message)) {
        ArenaTable::Answer answer = round_->arenas.open(*arena);
        workers_.send(local_rank, answer.reply, std::move(answer.memory));
    } else {
        happen(
            rendezvous::StoreRequest{round_->grant().first_rank + local_rank, std::move(message)});
    }
}

void AgentRunner::output_seen(int round, int local_rank) {
    if (is_current(round)) {
        happen(AgentEvent(GroupEvent(WorkerActive{local_rank, -1, true})));
    }
}

void AgentRunner::log_failed(const std::string& path, const std::string& words) {
    if (job_.spec.log_strict) {
        happen(AgentEvent(
            ShellFailed{exit_code::system_refused, "--log-strict: " + path + ": " + words}));
    } else {
        say("warning: " + path + ": " + words);
    }
}

// --- from the keeper ----------------------------------------------------------------------------

bool AgentRunner::is_current(int round) const {
    return round_ && round_->grant().round == round;
}

void AgentRunner::on(const keeper::Spawned& message) {
    if (is_current(message.round)) {
        if (!message.refused_binding.empty()) {
            say("warning: rank " + std::to_string(round_->grant().first_rank + message.local_rank) +
                " runs without its binding: " + message.refused_binding);
        }
        happen(AgentEvent(GroupEvent(WorkerStarted{message.local_rank, message.pid})));
    }
}

void AgentRunner::on(const keeper::NotSpawned& message) {
    output_.worker_ended(message.round, message.local_rank);
    if (is_current(message.round)) {
        start_failed(message.local_rank, message.stage, message.error_number);
    }
}

void AgentRunner::on(const keeper::Exited& message) {
    output_.worker_ended(message.round, message.local_rank);
    if (!is_current(message.round)) {
        return;
    }
    workers_.catch_up();
    const Duration age = detail::now().time_since_epoch() - Duration(message.at_ns);
    happen(AgentEvent(GroupEvent(WorkerExited{message.local_rank,
                                              ExitStatus::from_wait_status(message.wait_status),
                                              std::max(age, Duration{})})));
}

void AgentRunner::on(const keeper::StoppedOrContinued& message) {
    if (is_current(message.round)) {
        happen(AgentEvent(GroupEvent(WorkerStopped{message.local_rank, message.stopped})));
    }
}

void AgentRunner::on(const keeper::LeftBehind& message) {
    if (is_current(message.round)) {
        happen(AgentEvent(GroupEvent(DescendantsFound{message.local_rank, message.processes})));
    }
}

void AgentRunner::on(const keeper::RoundClear& message) {
    if (is_current(message.round)) {
        happen(AgentEvent(GroupEvent(TreesGone{})));
    }
}

void AgentRunner::on(const keeper::Stuck& message) {
    if (is_current(message.round)) {
        happen(AgentEvent(GroupEvent(
            ProcessStuck{message.pid, message.local_rank, message.command, message.wait_channel})));
    }
}

void AgentRunner::on(const keeper::Inspected& message) {
    if (is_current(message.round)) {
        happen(AgentEvent(GroupEvent(HangEvidence{message.local_rank, message.words})));
    }
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
        const Event event = std::move(events_.front());
        events_.pop_front();
        std::visit([this](const auto& one) { handle(one); }, event);
    }
    handling_ = false;
    set_timer();
}

void AgentRunner::handle(const AgentEvent& event) {
    perform(agent_.step(event, detail::now()));
}

void AgentRunner::handle(const rendezvous::ToCoordinator& message) {
    perform(coordinator_.step({0, message}, detail::now()));
}

void AgentRunner::handle(const rendezvous::StoreRequest& request) {
    if (round_) {
        perform(round_->store.step(request, detail::now()));
    }
}

void AgentRunner::perform(const Agent::Actions& actions) {
    for (const AgentAction& action : actions) {
        std::visit([this](const auto& one) { act(one); }, action);
    }
}

void AgentRunner::perform(const rendezvous::Coordinator::Actions& actions) {
    for (const rendezvous::NodeAnswer& answer : actions) {
        happen(AgentEvent(answer.message));
    }
}

void AgentRunner::perform(const rendezvous::KeyValueStore::Actions& actions) {
    for (const rendezvous::StoreReply& reply : actions) {
        workers_.send(reply.client - round_->grant().first_rank, reply.reply);
    }
}

void AgentRunner::advance() {
    handling_ = true;
    const TimePoint now = detail::now();
    perform(agent_.advance_to(now));
    perform(coordinator_.advance_to(now));
    if (round_) {
        perform(round_->store.advance_to(now));
    }
    handle_all();
}

void AgentRunner::set_timer() {
    auto next = earlier(agent_.next_deadline(), coordinator_.next_deadline());
    next = earlier(next, round_ ? round_->store.next_deadline() : std::nullopt);
    if (finish_ || next == timer_set_for_) {
        return;
    }
    timer_set_for_ = next;
    if (!next) {
        timer_.cancel();
        return;
    }
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
    workers_.begin_round(action.grant.round, action.grant.first_rank, job_.slots);
    round_began_ = detail::now();
    last_round_ = action.grant.round;
    refused_ = 0;
    if (const std::string warning = logs_.take_warning(); !warning.empty()) {
        say("warning: " + warning);
    }
}

void AgentRunner::act(const EndRound&) {
    workers_.end_round();
    round_.reset();
    publish_status("waiting");
}

// The workers stop first: what they still print would come after the shell's prompt, and the
// terminal must be back with ddrun's own process group.
void AgentRunner::act(const SuspendSelf&) {
    if (suspends_under_way_ > 0 && !keeper_lost_) {
        suspend_self_ = true;
    } else {
        ::raise(SIGSTOP);
    }
}

void AgentRunner::on(const keeper::Suspended&) {
    if (--suspends_under_way_ == 0 && std::exchange(suspend_self_, false)) {
        ::raise(SIGSTOP);
    }
}

void AgentRunner::act(const Finish& action) {
    finish_ = action;
    timer_.cancel();
    if (output_.drained()) {
        return conclude();
    }
    closing_timer_.expires_after(drain_patience);
    closing_timer_.async_wait([this](const error_code& error) {
        if (!error) {
            conclude();
        }
    });
}

void AgentRunner::act(const GroupAction& action) {
    std::visit([this](const auto& one) { act(one); }, action);
}

void AgentRunner::act(const StartWorkers&) {
    const int round = round_->grant().round;
    for (const WorkerPlan& plan : round_->plans()) {
        keeper_.send(
            [this, round, local_rank = plan.local_rank] { return spawn_frame(round, local_rank); });
    }
    publish_status("running");
}

void AgentRunner::act(const SignalWorkers& action) {
    keeper_.send(
        keeper::Signal{last_round_, action.signal, action.local_ranks, action.whole_group});
}

void AgentRunner::act(const TellWorkersToStop& action) {
    workers_.announce(rendezvous::StopRequested{action.signal, milliseconds_of(action.grace)});
    publish_status("stopping");
}

void AgentRunner::act(const TellWorkersAborted& action) {
    if (round_) {
        perform(round_->store.abort(action.words));
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
    WorkerNotStarted failure = describe_start_failure(local_rank, stage, error_number,
                                                      plan.argv.empty() ? "" : plan.argv.front());
    failure.started = local_rank - refused_++;  // workers start in rank order
    happen(AgentEvent(GroupEvent(std::move(failure))));
}

// --- the end ------------------------------------------------------------------------------------

void AgentRunner::conclude() {
    if (std::exchange(concluded_, true)) {
        return;
    }
    closing_timer_.cancel();
    keeper_.send(keeper::Quit{});
    say_summary();
    output_.relay().finish();
    publish_status("finished");
    end_keeper();
}

void AgentRunner::end_keeper() {
    if (keeper_lost_) {
        return io_.stop();
    }
    closing_timer_.expires_after(keeper_patience);
    closing_timer_.async_wait([this](const error_code& error) {
        if (!error) {  // a keeper that does not go is ended; its link then says so
            ::kill(keeper_.pid(), SIGKILL);
        }
    });
}

void AgentRunner::say_summary() {
    std::string text = render_summary(*finish_, summary_facts());
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        output_.relay().say(text.substr(0, end));
        text.erase(0, end == std::string::npos ? end : end + 1);
    }
}

SummaryFacts AgentRunner::summary_facts() {
    SummaryFacts facts;
    facts.program = job_.spec.program;
    facts.node_name = job_.facts.node_name;
    facts.max_restarts = job_.spec.max_restarts;
    facts.uptime = time_of_cause() - round_began_;
    facts.dropped_output = output_.relay().losses();
    if (finish_->cause) {
        facts.stderr_tail = output_.relay().tail(last_round_, finish_->cause->failure.local_rank);
        facts.log_path = log_path_of_cause();
        add_machine_facts(facts, memory_at_start_);
    }
    return facts;
}

// The end of the worker that was the cause, not that of the stop that followed.
TimePoint AgentRunner::time_of_cause() const {
    for (const WorkerRecord& worker : finish_->workers) {
        if (finish_->cause && worker.pid == finish_->cause->failure.pid && worker.ended_at) {
            return *worker.ended_at;
        }
    }
    return detail::now();
}

std::string AgentRunner::log_path_of_cause() const {
    WorkerPlan worker;
    worker.rank = finish_->cause->failure.rank;
    worker.local_rank = finish_->cause->failure.local_rank;
    const std::string file = logs_.file_of(worker);
    return file.empty() ? logs_.directory() : file;
}

void AgentRunner::publish_status(const std::string& state) {
    if (!status_) {
        return;
    }
    StatusReport report;
    report.job_id = job_.job_id;
    report.incarnation = job_.incarnation;
    report.state = state;
    report.pid = ::getpid();
    report.round = last_round_;
    report.max_restarts = job_.spec.max_restarts;
    report.restarts_used = finish_ ? finish_->restarts_used : std::max(0, last_round_ - 1);
    report.world_size = round_ ? round_->grant().world_size : job_.slots;
    if (finish_) {
        report.workers = finish_->workers;
        report.exit_code = finish_->exit_code;
        report.cause = finish_->cause ? finish_->cause->words : "";
    } else if (agent_.group() != nullptr) {
        report.workers = agent_.group()->workers();
    }
    status_->publish(to_json(report));
}

}  // namespace ddrun::launcher
