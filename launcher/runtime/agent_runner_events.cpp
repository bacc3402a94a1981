// What happens around the control thread, turned into events for the cores.
#include "launcher/runtime/agent_runner.hpp"
#include "launcher/runtime/child.hpp"
#include "launcher/runtime/start_failure.hpp"
#include "rendezvous/platform/clock.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace ddrun::launcher {
namespace {

constexpr auto reap_patience = std::chrono::seconds(2);
constexpr int descendants_patience_ms = 5000;

}  // namespace

void AgentRunner::signal_arrived(const ReceivedSignal& received) {
    if (received.signal == SIGCHLD) {
        return reap_children();
    }
    if (received.signal == SIGCONT) {
        suspend_self_ = false;  // who was told to go on before it stopped does not stop
    }
    const auto& stops = job_.spec.stop_signals;
    if (finish_ && std::find(stops.begin(), stops.end(), received.signal) != stops.end()) {
        return leave_if_impatient();
    }
    happen(AgentEvent(
        SignalArrived{received.signal, received.pid, received.uid, received.from_terminal}));
}

// As a subreaper, or as process 1 of a container, ddrun is given orphans that are nobody's workers.
void AgentRunner::reap_children() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == keeper_.pid()) {
            WIFSTOPPED(status) ? wake_keeper() : void(keeper_status_ = status);
        }
    }
}

// A stopped keeper hears of no end and ends nobody: the job would hang.
void AgentRunner::wake_keeper() {
    ::kill(keeper_.pid(), SIGCONT);
    if (!std::exchange(keeper_was_stopped_, true)) {
        say("warning: somebody stopped the keeper (pid " + std::to_string(keeper_.pid()) +
            "); it goes on");
    }
}

void AgentRunner::keeper_said(const keeper::FromKeeper& message) {
    std::visit([this](const auto& one) { on(one); }, message);
}

void AgentRunner::keeper_gone() {
    keeper_lost_ = true;
    if (!keeper_status_) {
        keeper_status_ = reap_child(keeper_.pid(), reap_patience);
    }
    if (concluded_) {
        return stop_when_all_gone();
    }
    // Workers have the keeper's end as their death signal; what they started is ours to end.
    const bool all_gone = keeper::end_all_descendants(descendants_patience_ms);
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
        happen(WorkerAsks{round_->grant().first_rank + local_rank, std::move(message)});
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
    workers_.catch_up(message.local_rank);
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
            ProcessStuck{message.pid, message.local_rank, message.command, message.held_by})));
    }
}

void AgentRunner::on(const keeper::Inspected& message) {
    if (is_current(message.round)) {
        happen(AgentEvent(GroupEvent(HangEvidence{message.local_rank, message.words})));
    }
}

}  // namespace ddrun::launcher
