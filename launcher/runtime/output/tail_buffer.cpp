#include "launcher/runtime/output/tail_buffer.hpp"

#include <algorithm>

namespace ddrun::launcher {

namespace {

std::string last_state(std::string_view line) {
    while (line.ends_with('\r')) line.remove_suffix(1);
    const auto overwritten = line.rfind('\r');
    if (overwritten != std::string_view::npos) line.remove_prefix(overwritten + 1);
    return std::string(line);
}

}  // namespace

void TailBuffer::add(std::string_view bytes) {
    if (bytes.size() > capacity_) {
        bytes.remove_prefix(bytes.size() - capacity_);
        lost_start_ = true;
    }
    const std::size_t grown = std::min(bytes.size(), capacity_ - ring_.size());
    ring_.append(bytes.substr(0, grown));
    bytes.remove_prefix(grown);
    if (bytes.empty()) return;
    lost_start_ = true;
    const std::size_t first = std::min(bytes.size(), capacity_ - next_);
    bytes.copy(ring_.data() + next_, first);
    bytes.substr(first).copy(ring_.data(), bytes.size() - first);
    next_ = (next_ + bytes.size()) % capacity_;
}

void TailBuffer::clear() {
    ring_ = std::string();
    next_ = 0;
    lost_start_ = false;
}

std::string TailBuffer::joined() const {
    return ring_.substr(next_) + ring_.substr(0, next_);
}

std::vector<std::string> TailBuffer::lines(std::size_t most) const {
    std::vector<std::string> found;
    const std::string text = joined();
    std::string_view rest = text;
    if (rest.ends_with('\n')) rest.remove_suffix(1);
    if (text.empty()) return found;
    while (found.size() < most) {
        const auto newline = rest.rfind('\n');
        if (newline == std::string_view::npos) {
            found.push_back((lost_start_ ? "..." : "") + last_state(rest));
            break;
        }
        found.push_back(last_state(rest.substr(newline + 1)));
        rest = rest.substr(0, newline);
    }
    std::reverse(found.begin(), found.end());
    return found;
}

}  // namespace ddrun::launcher
