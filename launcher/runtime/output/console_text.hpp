#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace ddrun::launcher {

// How a console treats a line that ends in '\r'.
enum class ProgressStyle {
    pass_on,  // as it is; before somebody else's line a newline is put in
    redraw,   // on a terminal: erased before other lines, drawn again below them
};

// The bytes that wait for one console, made of whole lines. Pure; one thread.
class ConsoleText {
  public:
    // Who wrote: 0 is ddrun itself.
    using Owner = int;

    ConsoleText(std::size_t limit, ProgressStyle style) : limit_(limit), style_(style) {}

    void line(Owner owner, std::string_view prefix, std::string_view text);      // ends in '\n'
    void piece(Owner owner, std::string_view prefix, std::string_view text);     // '\n' is added
    void progress(Owner owner, std::string_view prefix, std::string_view text);  // ends in '\r'
    // Text that will perhaps become a progress line: shown at once where it can be taken back.
    void preview(Owner owner, std::string_view prefix, std::string_view text);
    // The owner writes no more: its progress line becomes a line.
    void settle(Owner owner);
    void settle() { settle(progress_owner_); }

    // What to write next; `taken` removes that many bytes from its front.
    [[nodiscard]] std::string_view front();
    void taken(std::size_t bytes);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t limit() const { return limit_; }
    [[nodiscard]] std::uint64_t lines() const;  // that end in what waits
    // From the limit on until half of it is gone, so that a slow reader costs few wake-ups.
    [[nodiscard]] bool full() const { return full_; }
    [[nodiscard]] std::size_t room() const { return size_ < limit_ ? limit_ - size_ : 0; }

  private:
    static constexpr Owner nobody = -1;

    void make_way(Owner owner);
    void draw();
    void erase();
    void append(std::string_view first, std::string_view second) {
        const std::size_t bytes = first.size() + second.size();
        if (start_ + size_ + bytes > capacity_) grow(bytes);
        char* to = bytes_.get() + start_ + size_;
        if (!first.empty()) std::memcpy(to, first.data(), first.size());
        if (!second.empty()) std::memcpy(to + first.size(), second.data(), second.size());
        size_ += bytes;
        if (size_ >= limit_) full_ = true;
    }
    void grow(std::size_t bytes);

    std::size_t limit_;
    ProgressStyle style_;
    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t start_ = 0;
    std::size_t size_ = 0;
    bool full_ = false;

    Owner progress_owner_ = nobody;
    std::string progress_;  // redraw: prefix and text, without '\r'
    bool drawn_ = false;    // redraw: it stands at the end of the bytes
};

inline void ConsoleText::line(Owner owner, std::string_view prefix, std::string_view text) {
    if (progress_owner_ != nobody) make_way(owner);
    append(prefix, text);
}

}  // namespace ddrun::launcher
