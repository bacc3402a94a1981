// How the workers of a round are stopped until no process is left, and signals that only pass
// through.
#include "launcher/core/worker_group.hpp"

#include "launcher/core/group_causes.hpp"
#include "launcher/core/signals.hpp"
#include "launcher/core/words.hpp"

#include <utility>

namespace ddrun::launcher {
namespace {

// The keeper names a process that outlives SIGKILL; should it say nothing at all, we do after this.
constexpr auto keeper_slack = std::chrono::seconds(5);

}  // namespace

void WorkerGroup::on(const StopGroup& event, TimePoint now) {
    switch (phase_) {
        case Phase::created:
            phase_ = Phase::gone;
            out_.push_back(GroupGone{});
            break;
        case Phase::running:
        case Phase::suspecting:
        case Phase::doubtful:
        case Phase::failed:
            stop_workers(event.signal, now);
            break;
        case Phase::stopping:  // its deadline is running; a second signal could cut a save short
        case Phase::clearing:
        case Phase::unfit:
        case Phase::gone:
            break;
    }
}

void WorkerGroup::stop_workers(int signal, TimePoint now) {
    const auto ranks = living();
    if (ranks.empty()) return kill_trees(now);
    phase_ = Phase::stopping;
    std::vector<int> stopped;
    for (const int local_rank : ranks) {
        auto& worker = *find(local_rank);
        note_signal(worker, signal, now);
        if (hang_.is_stopped(local_rank)) stopped.push_back(local_rank);
    }
    out_.push_back(SignalWorkers{signal, ranks});
    out_.push_back(TellWorkersToStop{signal, rules_.shutdown_timeout});
    if (!stopped.empty()) out_.push_back(SignalWorkers{signals::go_on, stopped});
    wake_workers(now);
    deadline_ = now + rules_.shutdown_timeout;
}

void WorkerGroup::on(const KillGroup&, TimePoint now) {
    switch (phase_) {
        case Phase::created:
            on(StopGroup{}, now);
            break;
        case Phase::running:
        case Phase::suspecting:
        case Phase::doubtful:
        case Phase::failed:
        case Phase::stopping:
            kill_trees(now);
            break;
        case Phase::clearing:
        case Phase::unfit:
        case Phase::gone:
            break;
    }
}

void WorkerGroup::grace_is_over(TimePoint now) {
    std::vector<int> ranks;
    for (auto& worker : workers_) {
        if (!worker.lives()) continue;
        worker.killed_after_grace = true;
        ranks.push_back(worker.rank);
    }
    out_.push_back(Note{"killing " + rank_list(ranks) + " after " +
                            duration_text(rules_.shutdown_timeout) + " grace",
                        true});
    kill_trees(now);
}

void WorkerGroup::kill_trees(TimePoint now) {
    phase_ = Phase::clearing;
    deadline_ = now + rules_.kill_patience + keeper_slack;
    leftovers_.clear();
    suspended_at_.reset();
    for (auto& worker : workers_) {
        if (worker.lives()) note_signal(worker, signals::kill, now);
    }
    out_.push_back(KillTrees{});
}

void WorkerGroup::note_signal(WorkerRecord& worker, int signal, TimePoint now) {
    if (!worker.signalled_at) {
        worker.first_signal = signal;
        worker.signalled_at = now;
    }
    worker.signal_sent = signal;
}

// A worker that was dead before our first signal ended by itself; one that did not die of SIGKILL
// ended before that, by the signal that asked it to.
void WorkerGroup::settle_signals(WorkerRecord& worker) {
    if (!worker.signalled_at) return;
    const bool own_end = *worker.ended_at < *worker.signalled_at;
    const bool killed = worker.status->was_signalled() && worker.status->value == signals::kill;
    if (own_end || !killed) {
        worker.signal_sent = own_end ? 0 : worker.first_signal;
        worker.killed_after_grace = false;
    }
}

void WorkerGroup::on(const TreesGone&, TimePoint) {
    if (phase_ != Phase::clearing && phase_ != Phase::unfit) return;
    bool all_succeeded = !failure_said_;
    for (auto& worker : workers_) {
        worker.awaited = worker.running = false;
        all_succeeded =
            all_succeeded && worker.signal_sent == 0 && worker.status && worker.status->succeeded();
    }
    phase_ = Phase::gone;
    if (all_succeeded) out_.push_back(GroupSucceeded{});
    out_.push_back(GroupGone{});
}

void WorkerGroup::on(const ProcessStuck& event, TimePoint) {
    if (phase_ != Phase::clearing) return;
    rendezvous::WorkerFailure failure;
    failure.pid = event.pid;
    failure.local_rank = event.local_rank;
    failure.rank = event.local_rank < 0 ? -1 : rules_.first_rank + event.local_rank;
    node_unfit(stuck_words(event, rules_.first_rank, rules_.kill_patience), failure);
}

// Far too late to be true, the alarm means that ddrun itself was stopped, with the answer unread.
void WorkerGroup::keeper_is_silent(TimePoint now) {
    if (now > deadline_ + keeper_slack) {
        deadline_ = now + keeper_slack;
        return;
    }
    const auto waited = duration_text(rules_.kill_patience + keeper_slack);
    node_unfit("processes of this round are still there " + waited + " after SIGKILL", {});
}

void WorkerGroup::node_unfit(const std::string& words, const rendezvous::WorkerFailure& failure) {
    phase_ = Phase::unfit;
    rendezvous::Cause cause;
    cause.kind = rendezvous::CauseKind::node_unfit;
    cause.exit_code = exit_code::system_refused;
    cause.failure = failure;
    cause.words = words;
    out_.push_back(NodeUnfit{std::move(cause)});
}

void WorkerGroup::on(const ForwardSignal& event, TimePoint) {
    const auto ranks = living();
    if (ranks.empty() || phase_ == Phase::clearing || phase_ == Phase::unfit) return;
    for (const int local_rank : ranks) find(local_rank)->forwarded_signal = event.signal;
    out_.push_back(SignalWorkers{event.signal, ranks, false});
}

void WorkerGroup::on(const Suspend&, TimePoint now) {
    if (suspended_at_ || phase_ == Phase::created || phase_ == Phase::clearing ||
        phase_ == Phase::unfit)
        return;
    suspended_at_ = now;
    out_.push_back(SuspendWorkers{true});
}

void WorkerGroup::on(const Resume&, TimePoint now) {
    wake_workers(now);
}

// The time asleep belongs to nobody: every running deadline moves by it.
void WorkerGroup::wake_workers(TimePoint now) {
    if (!suspended_at_) return;
    const auto slept = now - *suspended_at_;
    suspended_at_.reset();
    deadline_ += slept;
    early_exit_.shift(slept);
    for (auto& leftover : leftovers_) leftover.due += slept;
    hang_.restart(now);
    out_.push_back(SuspendWorkers{false});
}

}  // namespace ddrun::launcher
