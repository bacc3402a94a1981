#include "launcher/core/group_causes.hpp"

#include "launcher/core/signals.hpp"
#include "launcher/core/words.hpp"

namespace ddrun::launcher {
namespace {

using rendezvous::Cause;
using rendezvous::CauseKind;
using rendezvous::WorkerFailure;

bool is_stop_signal(int signal) {
    return signal == signals::hangup || signal == signals::interrupt ||
           signal == signals::terminate;
}

std::string reason_of(const WorkerRecord& worker) {
    const bool by_forwarded = worker.status && worker.status->was_signalled() &&
                              worker.forwarded_signal != 0 &&
                              worker.status->value == worker.forwarded_signal;
    if (!by_forwarded) return worker.words;
    const auto name = signal_name(worker.forwarded_signal);
    return "ddrun forwarded " + name + " and the worker has no handler for it";
}

// A worker's own words inside a sentence.
std::string in_brackets(const std::string& words) {
    const auto lines = lines_of(words);
    return lines.empty() ? std::string() : " (" + plain_text(lines.front()) + ")";
}

Cause cause(CauseKind kind, int exit_code, WorkerFailure failure, std::string words) {
    Cause result;
    result.kind = kind;
    result.exit_code = exit_code;
    result.failure = std::move(failure);
    result.words = std::move(words);
    return result;
}

}  // namespace

// A shell in between reports its child's death by signal as an exit code over 128.
bool is_foreign_stop(const ExitStatus& status) {
    const int signal =
        status.was_signalled() ? status.value : status.value - exit_code::signal_base;
    return is_stop_signal(signal);
}

WorkerFailure failure_of(const WorkerRecord& worker, TimePoint now) {
    WorkerFailure failure;
    failure.rank = worker.rank;
    failure.local_rank = worker.local_rank;
    failure.pid = worker.pid;
    failure.status = worker.status.value_or(ExitStatus{});
    failure.age = worker.ended_at ? now - *worker.ended_at : Duration::zero();
    failure.signalled_by_ddrun = worker.signal_sent != 0;
    failure.blamed_rank = worker.blamed_rank;
    failure.never_retry = worker.never_retry;
    failure.reason = reason_of(worker);
    return failure;
}

Cause cause_of_failure(const WorkerRecord& worker, TimePoint now) {
    const auto failure = failure_of(worker, now);
    const int code = failure.never_retry ? exit_code::never_retry : failure.status.shell_code();
    auto words = "rank " + std::to_string(worker.rank) + ": " + failure.status.describe();
    if (failure.blamed_rank >= 0)
        words += " because of rank " + std::to_string(failure.blamed_rank);
    words += in_brackets(failure.reason);
    return cause(CauseKind::worker_failed, code, failure, words);
}

Cause cause_of_refusal(const WorkerRecord& worker, const WorkerNotStarted& event, int wanted) {
    WorkerFailure failure;
    failure.rank = worker.rank;
    failure.local_rank = worker.local_rank;
    failure.reason = event.words;
    // A program that cannot be executed is the same for every rank: the count would say nothing.
    const bool count_matters = event.exit_code == exit_code::system_refused && wanted > 1;
    const auto prefix = count_matters ? "started " + std::to_string(event.started) + " of " +
                                            std::to_string(wanted) + " workers: "
                                      : std::string();
    return cause(CauseKind::spawn_failed, event.exit_code, failure, prefix + event.words);
}

Cause cause_of_silent_peer(const WorkerRecord& accused, const WorkerRecord& worker, TimePoint now) {
    auto words = "rank " + std::to_string(accused.rank) + " does not answer: rank " +
                 std::to_string(worker.rank) + " gave up because of it";
    words += in_brackets(worker.words);
    return cause(CauseKind::hang, exit_code::timed_out, failure_of(accused, now), words);
}

Cause cause_of_early_exit(const WorkerRecord& worker, const std::string& words) {
    return cause(CauseKind::early_exit, exit_code::timed_out,
                 failure_of(worker, worker.ended_at.value_or(TimePoint{})), words);
}

Cause cause_of_hang(const WorkerRecord& worker, const std::string& words,
                    const std::vector<std::string>& evidence) {
    WorkerFailure failure;
    failure.rank = worker.rank;
    failure.local_rank = worker.local_rank;
    failure.pid = worker.pid;
    for (const auto& line : evidence) failure.reason += (failure.reason.empty() ? "" : "\n") + line;
    return cause(CauseKind::hang, exit_code::timed_out, failure, words);
}

std::string stuck_words(const ProcessStuck& event, int first_rank, Duration patience) {
    auto words = "process " + std::to_string(event.pid);
    if (!event.command.empty()) words += " (" + event.command + ")";
    if (event.local_rank >= 0) words += " of rank " + std::to_string(first_rank + event.local_rank);
    words += " is still there " + duration_text(patience) + " after SIGKILL";
    if (!event.held_by.empty()) words += ", " + event.held_by;
    return words + ": this node cannot be used until it is gone";
}

}  // namespace ddrun::launcher
