#include "launcher/core/early_exit_watch.hpp"

#include "launcher/core/words.hpp"

#include <algorithm>

namespace ddrun::launcher {

EarlyExitWatch::EarlyExitWatch(Rules rules) : rules_(rules) {}

void EarlyExitWatch::finished(int rank, TimePoint now) {
    if (ranks_.empty()) {
        first_at_ = now;
        next_notice_ = now + rules_.first_notice;
    }
    ranks_.push_back(rank);
}

void EarlyExitWatch::shift(Duration by) {
    first_at_ += by;
    next_notice_ += by;
}

std::optional<TimePoint> EarlyExitWatch::deadline() const {
    if (ranks_.empty()) return std::nullopt;
    return rules_.timeout ? std::min(next_notice_, first_at_ + *rules_.timeout) : next_notice_;
}

std::optional<std::string> EarlyExitWatch::notice(std::size_t running, TimePoint now) {
    if (ranks_.empty() || now < next_notice_) return std::nullopt;
    next_notice_ = now + rules_.repeat;
    return words(running, now);
}

bool EarlyExitWatch::expired(TimePoint now) const {
    return !ranks_.empty() && rules_.timeout && now >= first_at_ + *rules_.timeout;
}

std::string EarlyExitWatch::words(std::size_t running, TimePoint now) const {
    return rank_list(ranks_) + " finished (exit 0)" + (ranks_.size() > 1 ? ", the first " : " ") +
           duration_text(now - first_at_) + " ago, " + std::to_string(running) + " still running";
}

}  // namespace ddrun::launcher
