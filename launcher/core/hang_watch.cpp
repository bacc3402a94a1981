#include "launcher/core/hang_watch.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

// Workers that fell silent within this part of the time-out after the first one count as silent
// too: of ranks that stopped in the same step it is chance whose report came last.
constexpr auto tie_part = 10;

template <class Predicate>
std::vector<int> without(std::vector<int> workers, Predicate drop) {
    std::vector<int> kept;
    std::copy_if(workers.begin(), workers.end(), std::back_inserter(kept),
                 [&](int worker) { return !drop(worker); });
    return kept.empty() ? workers : kept;
}

}  // namespace

HangWatch::HangWatch(std::optional<Duration> timeout, int workers)
    : timeout_(timeout), clocks_(static_cast<std::size_t>(workers)) {}

void HangWatch::started(int worker, TimePoint now) {
    auto& clock = clocks_.at(static_cast<std::size_t>(worker));
    clock.watched = true;
    clock.moved_at = clock.alive_at = now;
}

void HangWatch::ended(int worker) {
    clocks_.at(static_cast<std::size_t>(worker)).watched = false;
}

void HangWatch::wrote(int worker, TimePoint now) {
    auto& clock = clocks_.at(static_cast<std::size_t>(worker));
    clock.moved_at = clock.alive_at = now;
}

bool HangWatch::progressed(int worker, std::int64_t step, TimePoint now) {
    auto& clock = clocks_.at(static_cast<std::size_t>(worker));
    const bool is_new = step > clock.step;
    clock.reports = true;
    clock.step = std::max(clock.step, step);
    clock.alive_at = now;
    if (is_new || clock.step < 0) clock.moved_at = now;
    return is_new;
}

void HangWatch::stopped(int worker, bool stopped, TimePoint now) {
    const bool stood_still = all_stopped();
    clocks_.at(static_cast<std::size_t>(worker)).stopped = stopped;
    if (stood_still) restart(now);
}

void HangWatch::restart(TimePoint now) {
    for (auto& clock : clocks_) clock.moved_at = clock.alive_at = now;
}

bool HangWatch::all_stopped() const {
    return std::all_of(clocks_.begin(), clocks_.end(),
                       [](const Clock& clock) { return !clock.watched || clock.stopped; });
}

// Workers that report nothing are quiet for as long as everybody is.
std::optional<TimePoint> HangWatch::shared_clock() const {
    std::optional<TimePoint> latest;
    bool needed = false;
    for (const auto& clock : clocks_) {
        if (!clock.watched) continue;
        latest = std::max(latest.value_or(clock.moved_at), clock.moved_at);
        needed = needed || !clock.reports;
    }
    return needed ? latest : std::nullopt;
}

std::optional<TimePoint> HangWatch::deadline() const {
    if (!timeout_ || all_stopped()) return std::nullopt;
    auto first = shared_clock();
    for (const auto& clock : clocks_) {
        if (clock.watched && clock.reports)
            first = std::min(first.value_or(clock.moved_at), clock.moved_at);
    }
    return first ? std::optional(*first + *timeout_) : std::nullopt;
}

std::vector<int> HangWatch::suspects(TimePoint now) const {
    const auto due = deadline();
    if (!due || now < *due) return {};
    auto silent = silent_reporters(now);
    if (silent.empty()) silent = silent_others(now);
    const bool someone_stopped =
        std::any_of(silent.begin(), silent.end(), [&](int worker) { return is_stopped(worker); });
    return someone_stopped ? without(silent, [&](int worker) { return !is_stopped(worker); })
                           : silent;
}

// Of those that are silent the ones that are behind, and of these the ones that show no sign of
// life: a rank that waits for a peer has done the peer's last step and may still send heartbeats.
std::vector<int> HangWatch::silent_reporters(TimePoint now) const {
    const auto limit = *timeout_ - *timeout_ / tie_part;
    std::vector<int> silent;
    bool expired = false;
    std::int64_t behind = 0;
    auto quietest = TimePoint::max();
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
        const auto& clock = clocks_[i];
        if (!clock.watched || !clock.reports || now - clock.moved_at < limit) continue;
        expired = expired || now - clock.moved_at >= *timeout_;
        behind = silent.empty() ? clock.step : std::min(behind, clock.step);
        quietest = std::min(quietest, clock.alive_at);
        silent.push_back(static_cast<int>(i));
    }
    if (!expired) return {};
    auto at = [&](int worker) -> const Clock& { return clocks_[static_cast<std::size_t>(worker)]; };
    silent = without(silent, [&](int worker) { return at(worker).step > behind; });
    return without(
        silent, [&](int worker) { return at(worker).alive_at > quietest + *timeout_ / tie_part; });
}

std::vector<int> HangWatch::silent_others(TimePoint now) const {
    std::vector<int> silent;
    const auto last = shared_clock();
    if (!last || now - *last < *timeout_) return silent;
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
        if (clocks_[i].watched && !clocks_[i].reports) silent.push_back(static_cast<int>(i));
    }
    return silent;
}

bool HangWatch::is_stopped(int worker) const {
    return clocks_.at(static_cast<std::size_t>(worker)).stopped;
}

std::int64_t HangWatch::last_step(int worker) const {
    return clocks_.at(static_cast<std::size_t>(worker)).step;
}

}  // namespace ddrun::launcher
