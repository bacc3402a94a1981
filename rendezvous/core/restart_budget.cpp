#include "rendezvous/core/restart_budget.hpp"

#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ddrun::rendezvous {
namespace {

// Same kind and same end, on whichever rank: a bug in the program shows on any of them first.
bool identical(const Cause& left, const Cause& right) {
    return left.kind == right.kind && left.failure.status.kind == right.failure.status.kind &&
           left.failure.status.value == right.failure.status.value;
}

// 0..255, well spread over neighbouring rounds.
std::uint64_t spread(std::uint64_t seed, int round) {
    std::uint64_t x = seed + static_cast<std::uint64_t>(round) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) & 0xffu;
}

}  // namespace

RestartBudget::RestartBudget(JobRules rules) : rules_(std::move(rules)) {}

RestartDecision RestartBudget::decide(const Cause& cause, const RoundLife& life) {
    note(cause, life);
    if (used_ >= rules_.max_restarts) return {};
    if (std::string why_not = refusal(cause); !why_not.empty()) {
        return {false, false, {}, std::move(why_not)};
    }
    ++used_;
    return {true, true, next_delay(life.round), {}};
}

void RestartBudget::take_back() {
    --used_;
}

void RestartBudget::note_no_failure(const RoundLife& life) {
    if (!was_healthy(life)) return;
    failures_in_a_row_ = identical_in_a_row_ = 0;
    last_.reset();
}

bool RestartBudget::was_healthy(const RoundLife& life) const {
    return life.committed_a_step || life.lived >= rules_.minimum_uptime;
}

void RestartBudget::note(const Cause& cause, const RoundLife& life) {
    if (was_healthy(life)) {
        failures_in_a_row_ = 1;
        identical_in_a_row_ = 0;
        last_.reset();
        return;
    }
    ++failures_in_a_row_;
    identical_in_a_row_ = last_ && identical(*last_, cause) ? identical_in_a_row_ + 1 : 1;
    last_ = cause;
}

std::string RestartBudget::refusal(const Cause& cause) const {
    if (cause.failure.never_retry) return "the worker asked not to be restarted";
    if (!worth_retrying(cause)) return "another attempt would end the same way";
    const int code = cause.failure.status.shell_code();
    const auto& listed = rules_.no_restart_on;
    if (cause.kind == CauseKind::worker_failed &&
        std::find(listed.begin(), listed.end(), code) != listed.end()) {
        return "exit code " + std::to_string(code) + " is listed in --no-restart-on";
    }
    if (rules_.crash_loop > 0 && identical_in_a_row_ >= rules_.crash_loop) {
        return std::to_string(identical_in_a_row_) +
               " identical failures in a row, each soon after its start (--crash-loop)";
    }
    return {};
}

Duration RestartBudget::next_delay(int round) const {
    if (failures_in_a_row_ <= 1) return Duration::zero();
    Duration delay = rules_.backoff_first;
    for (int i = 2; i < failures_in_a_row_ && delay < rules_.backoff_limit; ++i) delay *= 2;
    delay = std::min(delay, rules_.backoff_limit);
    if (rules_.jitter_seed == 0) return delay;
    return delay - delay / 5 * static_cast<int>(spread(rules_.jitter_seed, round)) / 255;
}

}  // namespace ddrun::rendezvous
