#include "launcher/core/worker_group.hpp"

#include "launcher/core/group_causes.hpp"
#include "launcher/core/words.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {
namespace {

constexpr int signal_kill = 9;
constexpr int signal_continue = 18;

// The keeper names a process that outlives SIGKILL; should it say nothing at all, we do after this.
constexpr auto keeper_slack = std::chrono::seconds(5);

// Far beyond any delay of a healthy control thread: ddrun itself was stopped or the machine slept.
constexpr auto long_sleep = std::chrono::seconds(2);

std::vector<WorkerRecord> unborn_workers(const GroupRules& rules) {
    std::vector<WorkerRecord> workers(static_cast<std::size_t>(rules.local_world_size));
    for (int i = 0; i < rules.local_world_size; ++i) {
        workers[static_cast<std::size_t>(i)].local_rank = i;
        workers[static_cast<std::size_t>(i)].rank = rules.first_rank + i;
    }
    return workers;
}

bool lives(const WorkerRecord& worker) { return worker.running || worker.awaited; }

}  // namespace

WorkerGroup::WorkerGroup(GroupRules rules)
    : rules_(rules),
      workers_(unborn_workers(rules)),
      hang_(rules.hang_timeout, rules.local_world_size),
      early_exit_({rules.early_exit_timeout, rules.early_notice_first, rules.early_notice_repeat}),
      leftovers_named_(workers_.size(), false) {}

WorkerGroup::Actions WorkerGroup::start(TimePoint) {
    if (phase_ != Phase::created) return {};
    phase_ = Phase::running;
    for (auto& worker : workers_) worker.awaited = true;
    return {StartWorkers{}};
}

WorkerGroup::Actions WorkerGroup::step(const GroupEvent& event, TimePoint now) {
    if (phase_ == Phase::gone) return {};
    notice_long_sleep(now);
    std::visit([&](const auto& happened) { on(happened, now); }, event);
    return std::exchange(out_, {});
}

WorkerGroup::Actions WorkerGroup::advance_to(TimePoint now) {
    const auto due = next_deadline();
    if (!due || now < *due) return {};
    notice_long_sleep(now);
    switch (phase_) {
        case Phase::running:
            clean_up_leftovers(now);
            if (early_exit_.expired(now)) {
                fail_early_exit(now);
            } else if (const auto words = early_exit_.notice(living().size(), now)) {
                out_.push_back(Note{*words, false});
            }
            if (phase_ == Phase::running) suspect(hang_.suspects(now), now);
            break;
        case Phase::suspecting: fail_hung(now); break;
        case Phase::doubtful: settle_doubt(now); break;
        case Phase::stopping: {
            std::vector<int> ranks;
            for (auto& worker : workers_) {
                if (!lives(worker)) continue;
                worker.killed_after_grace = true;
                ranks.push_back(worker.rank);
            }
            out_.push_back(Note{"killing " + rank_list(ranks) + " after " +
                                    duration_text(rules_.shutdown_timeout) + " grace",
                                true});
            kill_trees(now);
            break;
        }
        case Phase::clearing:
            node_unfit("processes of this round are still there " +
                           duration_text(rules_.kill_patience + keeper_slack) + " after SIGKILL",
                       {});
            break;
        case Phase::created:
        case Phase::failed:
        case Phase::unfit:
        case Phase::gone: break;
    }
    return std::exchange(out_, {});
}

std::optional<TimePoint> WorkerGroup::next_deadline() const {
    if (suspended_at_) return std::nullopt;
    switch (phase_) {
        case Phase::running: {
            std::optional<TimePoint> first = hang_.deadline();
            if (const auto due = early_exit_.deadline()) first = std::min(first.value_or(*due), *due);
            if (!leftovers_.empty()) {
                first = std::min(first.value_or(leftovers_.front().due), leftovers_.front().due);
            }
            return first;
        }
        case Phase::suspecting:
        case Phase::doubtful:
        case Phase::stopping:
        case Phase::clearing: return deadline_;
        case Phase::created:
        case Phase::failed:
        case Phase::unfit:
        case Phase::gone: break;
    }
    return std::nullopt;
}

// --- workers begin and end ----------------------------------------------------------------------

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
        const auto started = std::count_if(workers_.begin(), workers_.end(),
                                           [](const WorkerRecord& other) { return other.pid != 0; });
        fail(cause_of_refusal(*worker, event, static_cast<int>(started), rules_.local_world_size), now);
    }
    if ((phase_ == Phase::failed || phase_ == Phase::stopping) && !anyone_left()) kill_trees(now);
}

void WorkerGroup::on(const WorkerExited& event, TimePoint now) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !lives(*worker)) return;
    worker->awaited = worker->running = false;
    worker->status = event.status;
    worker->ended_at = now - event.age;
    // Already dead when we signalled it: that end was its own.
    if (worker->signalled_at && *worker->ended_at < *worker->signalled_at) {
        worker->signal_sent = 0;
        worker->killed_after_grace = false;
    }
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
    if (!anyone_left()) return kill_trees(now);
    early_exit_.finished(worker.rank, now);
    leftovers_.push_back({worker.local_rank, now + rules_.leftover_delay});
}

// A worker that was told to end by somebody else is likely one of many: the scheduler's signal to
// ddrun itself is on its way. A worker that blames a peer is not the cause: the peer's end is.
void WorkerGroup::worker_failed(const WorkerRecord& worker, TimePoint now) {
    const bool blames = worker.blamed_rank >= 0;
    const bool foreign = is_foreign_stop(*worker.status) && worker.forwarded_signal != worker.status->value;
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
    const bool frozen = worker.blamed_rank >= 0 && accused != nullptr && lives(*accused);
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

// --- nothing moves ------------------------------------------------------------------------------

void WorkerGroup::on(const WorkerStopped& event, TimePoint now) {
    const auto* worker = find(event.local_rank);
    if (worker != nullptr && lives(*worker)) hang_.stopped(event.local_rank, event.stopped, now);
}

void WorkerGroup::on(const WorkerActive& event, TimePoint now) {
    const auto* worker = find(event.local_rank);
    if (worker == nullptr || !lives(*worker)) return;
    if (event.by_output) {
        hang_.wrote(event.local_rank, now);
    } else if (hang_.progressed(event.local_rank, event.step, now)) {
        out_.push_back(StepReached{event.step});
    }
    if (phase_ == Phase::suspecting && hang_.suspects(now).empty()) phase_ = Phase::running;
}

void WorkerGroup::suspect(std::vector<int> suspects, TimePoint now) {
    constexpr std::size_t inspected_at_most = 4;
    if (suspects.empty()) return;
    phase_ = Phase::suspecting;
    suspects_ = std::move(suspects);
    evidence_.clear();
    deadline_ = now + rules_.inspect_patience;
    for (std::size_t i = 0; i < std::min(suspects_.size(), inspected_at_most); ++i) {
        out_.push_back(InspectWorker{suspects_[i]});
    }
}

void WorkerGroup::on(const HangEvidence& event, TimePoint now) {
    constexpr std::size_t asked_at_most = 4;
    if (phase_ != Phase::suspecting) return;
    evidence_.push_back("rank " + std::to_string(rules_.first_rank + event.local_rank) + ": " + event.words);
    if (evidence_.size() == std::min(suspects_.size(), asked_at_most)) fail_hung(now);
}

void WorkerGroup::fail_hung(TimePoint now) {
    std::vector<int> ranks;
    for (const int suspect : suspects_) ranks.push_back(rules_.first_rank + suspect);
    const int first = suspects_.front();
    auto words = "no progress and no output from " + rank_list(ranks) + " for " +
                 duration_text(*rules_.hang_timeout);
    if (hang_.last_step(first) >= 0) words += ", last step " + std::to_string(hang_.last_step(first));
    if (hang_.is_stopped(first)) words += ", stopped by a signal";
    for (const auto& line : evidence_) words += "; " + line;
    fail(cause_of_hang(*find(first), words), now);
}

void WorkerGroup::fail_early_exit(TimePoint now) {
    const auto first = std::min_element(workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
        return a.ended_at.value_or(TimePoint::max()) < b.ended_at.value_or(TimePoint::max());
    });
    fail(cause_of_early_exit(*first, early_exit_.words(living().size(), now)), now);
}

void WorkerGroup::notice_long_sleep(TimePoint now) {
    const auto due = hang_.deadline();
    if (due && !suspended_at_ && now > *due + long_sleep) hang_.restart(now);
}

// --- stopping -----------------------------------------------------------------------------------

void WorkerGroup::on(const StopGroup& event, TimePoint now) {
    switch (phase_) {
        case Phase::created:
            phase_ = Phase::gone;
            out_.push_back(GroupGone{});
            break;
        case Phase::running:
        case Phase::suspecting:
        case Phase::doubtful:
        case Phase::failed: stop_workers(event.signal, now); break;
        case Phase::stopping:  // its deadline is running; a second signal could cut a save short
        case Phase::clearing:
        case Phase::unfit:
        case Phase::gone: break;
    }
}

void WorkerGroup::stop_workers(int signal, TimePoint now) {
    const auto ranks = living();
    if (ranks.empty()) return kill_trees(now);
    phase_ = Phase::stopping;
    std::vector<int> stopped;
    for (const int local_rank : ranks) {
        auto& worker = *find(local_rank);
        worker.signal_sent = signal;
        worker.signalled_at = now;
        if (hang_.is_stopped(local_rank)) stopped.push_back(local_rank);
    }
    out_.push_back(SignalWorkers{signal, ranks});
    out_.push_back(TellWorkersToStop{signal, rules_.shutdown_timeout});
    if (!stopped.empty()) out_.push_back(SignalWorkers{signal_continue, stopped});
    wake_workers(now);
    deadline_ = now + rules_.shutdown_timeout;
}

void WorkerGroup::on(const KillGroup&, TimePoint now) {
    switch (phase_) {
        case Phase::created: on(StopGroup{}, now); break;
        case Phase::running:
        case Phase::suspecting:
        case Phase::doubtful:
        case Phase::failed:
        case Phase::stopping: kill_trees(now); break;
        case Phase::clearing:
        case Phase::unfit:
        case Phase::gone: break;
    }
}

void WorkerGroup::kill_trees(TimePoint now) {
    phase_ = Phase::clearing;
    deadline_ = now + rules_.kill_patience + keeper_slack;
    leftovers_.clear();
    suspended_at_.reset();
    for (auto& worker : workers_) {
        if (!lives(worker)) continue;
        worker.signal_sent = signal_kill;
        worker.signalled_at = now;
    }
    out_.push_back(KillTrees{});
}

void WorkerGroup::on(const TreesGone&, TimePoint) {
    if (phase_ != Phase::clearing && phase_ != Phase::unfit) return;
    bool all_succeeded = !failure_said_;
    for (auto& worker : workers_) {
        worker.awaited = worker.running = false;
        all_succeeded = all_succeeded && worker.signal_sent == 0 && worker.status &&
                        worker.status->succeeded();
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

void WorkerGroup::node_unfit(const std::string& words, const rendezvous::WorkerFailure& failure) {
    phase_ = Phase::unfit;
    rendezvous::Cause cause;
    cause.kind = rendezvous::CauseKind::node_unfit;
    cause.exit_code = exit_code::system_refused;
    cause.failure = failure;
    cause.words = words;
    out_.push_back(NodeUnfit{std::move(cause)});
}

// --- what finished workers leave -----------------------------------------------------------------

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
    if (!finished || failure_said_ || leftovers_named_[static_cast<std::size_t>(event.local_rank)]) return;
    leftovers_named_[static_cast<std::size_t>(event.local_rank)] = true;
    auto words = "rank " + std::to_string(worker->rank) + " left " +
                 std::to_string(event.processes.size()) +
                 (event.processes.size() == 1 ? " process" : " processes") + ", ended by ddrun: ";
    for (std::size_t i = 0; i < std::min(event.processes.size(), named_at_most); ++i) {
        words += (i == 0 ? "" : ", ") + std::to_string(event.processes[i].first) + " " + event.processes[i].second;
    }
    if (event.processes.size() > named_at_most) words += ", ...";
    out_.push_back(Note{words, true});
}

// --- words of SDK workers --------------------------------------------------------------------------

void WorkerGroup::on(const WorkerBlamed& event, TimePoint) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !lives(*worker) || event.rank == worker->rank) return;
    worker->blamed_rank = event.rank;
    worker->words = event.words;
}

void WorkerGroup::on(const WorkerSaidNeverRetry& event, TimePoint) {
    auto* worker = find(event.local_rank);
    if (worker == nullptr || !lives(*worker)) return;
    worker->never_retry = true;
    worker->words = event.words;
}

// --- signals that only pass through, and Ctrl-Z ----------------------------------------------------

void WorkerGroup::on(const ForwardSignal& event, TimePoint) {
    const auto ranks = living();
    if (ranks.empty() || phase_ == Phase::clearing || phase_ == Phase::unfit) return;
    for (const int local_rank : ranks) find(local_rank)->forwarded_signal = event.signal;
    out_.push_back(SignalWorkers{event.signal, ranks});
}

void WorkerGroup::on(const Suspend&, TimePoint now) {
    if (suspended_at_ || phase_ == Phase::created || phase_ == Phase::clearing || phase_ == Phase::unfit) return;
    suspended_at_ = now;
    out_.push_back(SuspendWorkers{true});
}

void WorkerGroup::on(const Resume&, TimePoint now) { wake_workers(now); }

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

// --- questions ---------------------------------------------------------------------------------------

WorkerRecord* WorkerGroup::find(int local_rank) {
    if (local_rank < 0 || static_cast<std::size_t>(local_rank) >= workers_.size()) return nullptr;
    return &workers_[static_cast<std::size_t>(local_rank)];
}

std::vector<int> WorkerGroup::living() const {
    std::vector<int> ranks;
    for (const auto& worker : workers_) {
        if (lives(worker)) ranks.push_back(worker.local_rank);
    }
    return ranks;
}

bool WorkerGroup::anyone_left() const { return std::any_of(workers_.begin(), workers_.end(), lives); }

bool WorkerGroup::may_fail() const {
    switch (phase_) {
        case Phase::running:
        case Phase::suspecting:
        case Phase::doubtful: return true;
        case Phase::created:
        case Phase::failed:
        case Phase::stopping:
        case Phase::clearing:
        case Phase::unfit:
        case Phase::gone: break;
    }
    return false;
}

std::string WorkerGroup::describe() const {
    auto name = [this] {
        switch (phase_) {
            case Phase::created: return "created";
            case Phase::running: return "running";
            case Phase::suspecting: return "suspecting";
            case Phase::doubtful: return "doubtful";
            case Phase::failed: return "failed";
            case Phase::stopping: return "stopping";
            case Phase::clearing: return "clearing";
            case Phase::unfit: return "unfit";
            case Phase::gone: return "gone";
        }
        return "?";
    };
    const auto ended = std::count_if(workers_.begin(), workers_.end(),
                                     [](const WorkerRecord& worker) { return worker.status.has_value(); });
    return std::string(suspended_at_ ? "suspended " : "") + name() + ", " +
           std::to_string(living().size()) + " living and " + std::to_string(ended) + " ended of " +
           std::to_string(workers_.size());
}

}  // namespace ddrun::launcher
