#include "launcher/runtime/output/console_text.hpp"

#include <algorithm>

namespace ddrun::launcher {

namespace {

constexpr std::size_t first_capacity = 256u << 10;
constexpr std::string_view erase_line = "\r\x1b[K";
// Without wrapping, a progress line wider than the terminal stays one row and can be erased.
constexpr std::string_view no_wrap = "\x1b[?7l";
constexpr std::string_view wrap_and_return = "\x1b[?7h\r";

}  // namespace

void ConsoleText::piece(Owner owner, std::string_view prefix, std::string_view text) {
    line(owner, prefix, text);
    append("\n", {});
}

void ConsoleText::progress(Owner owner, std::string_view prefix, std::string_view text) {
    if (text == "\r") return;  // bars begin with it; a bare prefix would flash up
    if (style_ == ProgressStyle::redraw) {
        text.remove_suffix(1);
        progress_owner_ = nobody;
        preview(owner, prefix, text);
        return;
    }
    if (progress_owner_ != nobody) make_way(owner);
    append(prefix, text);
    progress_owner_ = owner;
}

void ConsoleText::preview(Owner owner, std::string_view prefix, std::string_view text) {
    if (style_ != ProgressStyle::redraw) return;
    // Another one's bar is on the screen: unfinished text does not take its place.
    if (progress_owner_ != nobody && progress_owner_ != owner) return;
    progress_owner_ = owner;
    std::string next(prefix);
    next += text.substr(0, text.find_last_not_of('\r') + 1);
    if (drawn_ && next == progress_) return;
    progress_ = std::move(next);
    erase();
    draw();
}

void ConsoleText::settle(Owner owner) {
    if (progress_owner_ == nobody || progress_owner_ != owner) return;
    if (style_ == ProgressStyle::redraw) {
        erase();
        append(progress_, {});
    }
    append("\n", {});
    progress_owner_ = nobody;
    progress_.clear();
}

void ConsoleText::make_way(Owner owner) {
    erase();
    if (style_ == ProgressStyle::pass_on) {
        if (owner != progress_owner_) append("\n", {});
        progress_owner_ = nobody;
    } else if (owner == progress_owner_) {
        progress_owner_ = nobody;
        progress_.clear();
    }
}

void ConsoleText::erase() {
    if (drawn_) append(erase_line, {});
    drawn_ = false;
}

void ConsoleText::draw() {
    append(no_wrap, progress_);
    append(wrap_and_return, {});
    drawn_ = true;
}

std::string_view ConsoleText::front() {
    if (size_ > 0 && style_ == ProgressStyle::redraw && progress_owner_ != nobody && !drawn_)
        draw();
    return {bytes_.get() + start_, size_};
}

std::uint64_t ConsoleText::lines() const {
    const char* from = bytes_.get() + start_;
    return static_cast<std::uint64_t>(std::count(from, from + size_, '\n'));
}

void ConsoleText::taken(std::size_t bytes) {
    start_ += bytes;
    size_ -= bytes;
    if (size_ <= limit_ / 2) full_ = false;
    if (size_ > 0) return;
    start_ = 0;
    if (capacity_ > limit_) {  // what a slow reader needed; at most the limit is kept
        bytes_.reset();
        capacity_ = 0;
    }
}

void ConsoleText::grow(std::size_t bytes) {
    const std::size_t needed = size_ + bytes;
    // Moving down is worth it only when much room comes back, else every append would move
    // everything.
    if (needed <= capacity_ && start_ >= capacity_ / 4) {
        std::memmove(bytes_.get(), bytes_.get() + start_, size_);
    } else {
        const std::size_t capacity = std::max({first_capacity, needed, capacity_ + capacity_ / 2});
        std::unique_ptr<char[]> larger(new char[capacity]);  // not zeroed: make_unique would
        if (size_ > 0) std::memcpy(larger.get(), bytes_.get() + start_, size_);
        bytes_ = std::move(larger);
        capacity_ = capacity;
    }
    start_ = 0;
}

}  // namespace ddrun::launcher
