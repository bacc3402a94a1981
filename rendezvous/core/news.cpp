#include "rendezvous/core/news.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr Duration gather_time = std::chrono::milliseconds(200);
// 0.5 s of quiet for a thousand nodes, 5 s for ten thousand.
constexpr Duration quiet_per_listener = std::chrono::microseconds(500);
constexpr std::size_t lines_at_most = 4;

}  // namespace

void News::add(int node, std::string words, bool warning, TimePoint now) {
    if (lines_.empty()) due_ = std::max(now + gather_time, not_before_);
    lines_[node] = {std::move(words), warning};
}

bool News::take_back(int node) {
    return lines_.erase(node) > 0;
}

std::optional<TimePoint> News::due() const {
    return lines_.empty() ? std::nullopt : std::optional(due_);
}

Notice News::take(TimePoint now, std::size_t listeners) {
    not_before_ = now + quiet_per_listener * static_cast<Duration::rep>(listeners);
    Notice notice;
    std::size_t told = 0;
    for (const auto& [node, line] : std::exchange(lines_, {})) {
        notice.warning |= line.warning;
        if (told++ < lines_at_most) notice.words += (told > 1 ? "; " : "") + line.words;
    }
    if (told > lines_at_most) {
        notice.words += "; and so for " + std::to_string(told - lines_at_most) + " more nodes";
    }
    return notice;
}

}  // namespace ddrun::rendezvous
