// How workers begin and end, and which end is a failure of the round.
#include "launcher/core/worker_group.hpp"

#include "launcher/core/group_causes.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {

void WorkerGroup::on(const WorkerStarted& event, TimePoint now) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !worker->awaited) return;
    worker->awaited = false;
    worker->running = true;
    worker->pid = event.pid;
    hang_.started(event.local_rank, now);
}

void WorkerGroup::on(const WorkerNotStarted& event, TimePoint now) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !worker->awaited) return;
    worker->awaited = false;
    worker->words = event.words;
    if (may_fail()) {
        fail(cause_of_refusal(*worker, event, rules_.local_world_size), now);
    }
    if ((phase_ == Phase::failed || phase_ == Phase::stopping) && !anyone_left()) kill_trees(now);
}

void WorkerGroup::on(const WorkerExited& event, TimePoint now) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !worker->lives()) return;
    worker->awaited = worker->running = false;
    worker->status = event.status;
    worker->ended_at = now - event.age;
    settle_signals(*worker);
    hang_.ended(event.local_rank);
    if (may_fail()) {
        if (event.status == ExitStatus{ExitStatus::Kind::exited, exit_code::never_retry, false}) {
            worker->never_retry = true;
        }
        event.status.succeeded() ? worker_finished(*worker, now) : worker_failed(*worker, now);
    }
    if ((phase_ == Phase::failed || phase_ == Phase::stopping) && !anyone_left()) kill_trees(now);
}

void WorkerGroup::worker_finished(const WorkerRecord& worker, TimePoint now) {
    if (phase_ == Phase::doubtful) return;
    phase_ = Phase::running;
    leftovers_.push_back({worker.local_rank, now + rules_.leftover_delay});
    if (anyone_left()) return early_exit_.finished(worker.rank, now);
    // Looked at before everything is killed, so that what was left is named.
    for (const auto& leftover : std::exchange(leftovers_, {})) {
        out_.push_back(CleanUpAfter{leftover.local_rank});
    }
    kill_trees(now);
}

// A worker that was told to end by somebody else is likely one of many: the scheduler's signal to
// ddrun itself is on its way. A worker that blames a peer is not the cause: the peer's end is.
void WorkerGroup::worker_failed(const WorkerRecord& worker, TimePoint now) {
    const bool blames = worker.blamed_rank >= 0;
    const bool foreign =
        is_foreign_stop(*worker.status) && worker.forwarded_signal != worker.status->value;
    if (phase_ == Phase::doubtful) {
        const bool first_one_blames = find(doubted_)->blamed_rank >= 0;
        if (!first_one_blames || blames) return;
    }
    if (!blames && !foreign) return fail(cause_of_failure(worker, now), now);
    phase_ = Phase::doubtful;
    doubted_ = worker.local_rank;
    deadline_ = *worker.ended_at + rules_.foreign_stop_window;
}

void WorkerGroup::settle_doubt(TimePoint now) {
    const auto& worker = *find(doubted_);
    const auto* accused = find(worker.blamed_rank - rules_.first_rank);
    const bool frozen = worker.blamed_rank >= 0 && accused != nullptr && accused->lives();
    fail(frozen ? cause_of_silent_peer(*accused, worker, now) : cause_of_failure(worker, now), now);
}

void WorkerGroup::fail(rendezvous::Cause cause, TimePoint now) {
    phase_ = Phase::failed;
    if (!failure_said_) {
        failure_said_ = true;
        if (anyone_left()) out_.push_back(TellWorkersAborted{cause.failure.rank, cause.words});
        out_.push_back(GroupFailed{std::move(cause)});
    }
    if (!anyone_left()) kill_trees(now);
}

void WorkerGroup::clean_up_leftovers(TimePoint now) {
    while (!leftovers_.empty() && leftovers_.front().due <= now) {
        out_.push_back(CleanUpAfter{leftovers_.front().local_rank});
        leftovers_.erase(leftovers_.begin());
    }
}

void WorkerGroup::on(const DescendantsFound& event, TimePoint) {
    constexpr std::size_t named_at_most = 5;
    const auto* worker = find(event.local_rank);
    if (worker == nullptr || event.processes.empty()) return;
    // After a failure or a stop it is no news that helpers are ended with their worker.
    const bool finished = worker->status && worker->status->succeeded() && worker->signal_sent == 0;
    if (!finished || failure_said_ || leftovers_named_[static_cast<std::size_t>(event.local_rank)])
        return;
    leftovers_named_[static_cast<std::size_t>(event.local_rank)] = true;
    auto words = "rank " + std::to_string(worker->rank) + " left " +
                 std::to_string(event.processes.size()) +
                 (event.processes.size() == 1 ? " process" : " processes") + ", ended by ddrun: ";
    for (std::size_t i = 0; i < std::min(event.processes.size(), named_at_most); ++i) {
        words += (i == 0 ? "" : ", ") + std::to_string(event.processes[i].first) + " " +
                 event.processes[i].second;
    }
    if (event.processes.size() > named_at_most) words += ", ...";
    out_.push_back(Note{words, true});
}

void WorkerGroup::on(const WorkerBlamed& event, TimePoint) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !worker->lives() || event.rank == worker->rank) return;
    worker->blamed_rank = event.rank;
    worker->words = event.words;
}

void WorkerGroup::on(const WorkerSaidNeverRetry& event, TimePoint) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !worker->lives()) return;
    worker->never_retry = true;
    worker->words = event.words;
}

}  // namespace ddrun::launcher
