#include "launcher/core/summary.hpp"

#include "launcher/core/signals.hpp"
#include "launcher/core/summary_hint.hpp"
#include "launcher/core/words.hpp"

#include <algorithm>
#include <map>

namespace ddrun::launcher {
namespace {

using rendezvous::Cause;
using rendezvous::CauseKind;

class Lines {
  public:
    void add(const std::string& words) {
        for (const auto& line : lines_of(words)) text_ += "ddrun: " + plain_text(line) + "\n";
    }
    void quote(const std::string& line) { text_ += "ddrun:   | " + plain_text(line) + "\n"; }
    [[nodiscard]] std::string text() const { return text_; }

  private:
    std::string text_;
};

// "node n0 rank 1 (local 1) pid 4242"
std::string place_of(const Cause& cause) {
    const auto& failure = cause.failure;
    auto words = (cause.node_name.empty() ? "node " + std::to_string(cause.node_rank)
                                          : "node " + cause.node_name) +
                 " rank " + std::to_string(failure.rank) + " (local " +
                 std::to_string(failure.local_rank) + ")";
    if (failure.pid > 0) words += " pid " + std::to_string(failure.pid);
    return words;
}

std::string headline(const Cause& cause, const SummaryFacts& facts) {
    const auto program = facts.program.empty() ? std::string("the job") : facts.program;
    switch (cause.kind) {
        case CauseKind::worker_failed:
            return program + " failed: rank " + std::to_string(cause.failure.rank) + " " +
                   (cause.failure.status.was_signalled() ? "" : "ended with ") +
                   cause.failure.status.describe();
        case CauseKind::hang:
            return program + " hangs: " + cause.words;
        case CauseKind::early_exit:
            return program + " ended too early: " + cause.words;
        case CauseKind::spawn_failed:
        case CauseKind::told_to_stop:
        case CauseKind::node_unfit:
        case CauseKind::keeper_lost:
        case CauseKind::never_formed:
        case CauseKind::node_lost:
        case CauseKind::node_left:
        case CauseKind::membership: {
            const bool elsewhere = !cause.node_name.empty() && cause.node_name != facts.node_name;
            const bool named = cause.words.find("node " + cause.node_name) != std::string::npos;
            return (elsewhere && !named ? "node " + cause.node_name + ": " : std::string()) +
                   cause.words;
        }
    }
    return cause.words;
}

void add_root_cause(Lines& lines, const Cause& cause, const SummaryFacts& facts) {
    if (!is_about_workers(cause.kind)) return;
    auto words = (cause.kind == CauseKind::hang ? "suspect: " : "root cause: ") + place_of(cause);
    if (cause.kind == CauseKind::worker_failed) {
        words += ": " + cause.failure.status.describe();
        if (facts.uptime) words += " after " + duration_text(*facts.uptime);
        if (cause.failure.blamed_rank >= 0)
            words += ", because of rank " + std::to_string(cause.failure.blamed_rank);
    }
    lines.add(words);
    lines.add(cause.failure.reason);
    if (!facts.stderr_tail.empty()) lines.add("its last lines:");
    for (const auto& line : facts.stderr_tail) lines.quote(line);
}

std::string restarts_words(const Finish& finish, const SummaryFacts& facts) {
    if (facts.max_restarts == 0 || finish.cause->kind == CauseKind::told_to_stop) return {};
    return "restarts used: " + std::to_string(finish.restarts_used) + " of " +
           std::to_string(facts.max_restarts) +
           (finish.why_no_restart.empty() ? "" : "; no other one: " + finish.why_no_restart);
}

// --- the other ranks, many of them in few lines ---

bool is_the_cause(const WorkerRecord& worker, const Cause& cause) {
    return is_about_workers(cause.kind) && worker.rank == cause.failure.rank;
}

// What became of a worker that is not the cause. Own ends come in endless variety, the others do
// not.
struct Fate {
    bool own_end = false;
    std::string words;
    auto operator<=>(const Fate&) const = default;
};

Fate fate_of(const WorkerRecord& worker, const Finish& finish) {
    if (worker.pid == 0 && !worker.status) return {false, "never ran"};
    if (worker.killed_after_grace) {
        return {false, "killed after " + duration_text(finish.shutdown_timeout) + " grace"};
    }
    if (worker.signal_sent == signals::kill) return {false, "killed by ddrun (SIGKILL)"};
    if (worker.signal_sent != 0) {
        return {false, "stopped by ddrun (" + signal_name(worker.signal_sent) + ")"};
    }
    if (!worker.status) return {false, "never ran"};
    if (worker.status->succeeded()) return {false, "finished before (exit code 0)"};
    const bool is_second = is_about_workers(finish.cause->kind);
    if (worker.blamed_rank >= 0 && is_second) {
        return {true, "gave up because of rank " + std::to_string(worker.blamed_rank)};
    }
    const std::string how = is_second ? "failed after it (" : "ended by itself (";
    return {true, how + worker.status->describe() + ")"};
}

// Where nothing ever ran, or everything died at once, a list of ranks says nothing.
bool others_matter(const Finish& finish) {
    if (finish.cause->kind == CauseKind::keeper_lost) return false;
    return std::any_of(finish.workers.begin(), finish.workers.end(),
                       [](const WorkerRecord& worker) { return worker.pid != 0; });
}

void add_other_ranks(Lines& lines, const Finish& finish) {
    constexpr int own_ends_at_most = 8;
    std::map<Fate, std::vector<int>> fates;
    for (const auto& worker : finish.workers) {
        if (!is_the_cause(worker, *finish.cause)) {
            fates[fate_of(worker, finish)].push_back(worker.rank);
        }
    }
    int own_ends = 0;
    std::vector<int> rest;
    for (const auto& [fate, ranks] : fates) {
        if (fate.own_end && ++own_ends > own_ends_at_most) {
            rest.insert(rest.end(), ranks.begin(), ranks.end());
        } else {
            lines.add(rank_list(ranks) + " " + fate.words);
        }
    }
    if (!rest.empty()) lines.add(rank_list(rest) + " ended in other ways");
}

}  // namespace

bool cause_was_here(const Finish& finish) {
    if (!finish.cause || !is_about_workers(finish.cause->kind)) return false;
    const rendezvous::WorkerFailure& failure = finish.cause->failure;
    return std::any_of(finish.workers.begin(), finish.workers.end(), [&](const auto& worker) {
        return worker.rank == failure.rank && (failure.pid == 0 || worker.pid == failure.pid);
    });
}

std::string render_summary(const Finish& finish, const SummaryFacts& facts) {
    Lines lines;
    if (finish.cause) {
        const auto& cause = *finish.cause;
        lines.add(headline(cause, facts));
        add_root_cause(lines, cause, facts);
        if (others_matter(finish)) add_other_ranks(lines, finish);
        if (cause.words != finish.still_there) lines.add(finish.still_there);
        lines.add(restarts_words(finish, facts));
        if (!facts.log_path.empty()) lines.add("log: " + facts.log_path);
        const auto hint = hint_for(finish, facts);
        if (!hint.empty()) lines.add("hint: " + hint);
    }
    for (const auto& loss : facts.dropped_output) lines.add("output lost: " + loss);
    return lines.text();
}

}  // namespace ddrun::launcher
