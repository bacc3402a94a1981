#pragma once

#include "launcher/runtime/output/console_descriptor.hpp"
#include "launcher/runtime/output/console_text.hpp"
#include "launcher/runtime/output/reader_watch.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun::launcher {

struct ConsoleOptions {
    int fd = 1;
    std::string name = "console";   // in losses and markers
    std::size_t buffer = 0;         // bytes kept for a slow reader
    Duration patience{};            // after so long without a byte taken nobody waits any more
    bool redraws_progress = false;  // a terminal that understands "erase line"
};

// One place where people read: a queue of whole lines, a descriptor, and the judgement whether its
// reader is slow (wait), stuck (drop and count) or gone (off). Output thread only; never blocks but
// on a file's disk.
class Console {
  public:
    using Owner = ConsoleText::Owner;

    explicit Console(const ConsoleOptions& options);

    // A worker's unit; dropped and counted while nobody reads.
    void line(Owner owner, std::string_view prefix, std::string_view text) {
        if (refuses()) [[unlikely]] {
            drop();
        } else {
            text_.line(owner, prefix, text);
        }
    }
    void piece(Owner owner, std::string_view prefix, std::string_view text);
    void progress(Owner owner, std::string_view prefix, std::string_view text);
    void preview(Owner owner, std::string_view prefix, std::string_view text);
    void settle(Owner owner);

    // ddrun's own line; dropped only when even twice the buffer is full.
    void say(std::string_view line);

    // A stream that feeds this console must wait: back-pressure.
    [[nodiscard]] bool must_wait() const { return !off_ && text_.full() && !watch_.given_up(); }
    // Bytes it takes before it makes streams wait.
    [[nodiscard]] std::size_t room() const;

    [[nodiscard]] bool off() const { return off_; }

    void flush(TimePoint now);
    void advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // The last lines of the job: nothing is pending, or nobody will take it.
    void settle_all() { text_.settle(); }
    [[nodiscard]] bool done() const { return off_ || text_.size() == 0 || watch_.given_up(); }
    void close();  // what is left is counted as dropped

    [[nodiscard]] std::size_t waiting_bytes() const { return text_.size(); }
    // Wants to hear when poll_fd() is writable; asks once for each refusal.
    [[nodiscard]] bool take_poll_wish();
    [[nodiscard]] int poll_fd() const { return descriptor_.poll_fd(); }

    // "console: 120 lines dropped (...)" or "console: switched off (Broken pipe)".
    [[nodiscard]] std::optional<std::string> loss() const;
    // Once: why it was switched off for good.
    [[nodiscard]] std::optional<std::string> take_obituary();

  private:
    [[nodiscard]] bool refuses() const { return off_ || (text_.full() && watch_.given_up()); }
    void drop() { dropped_ += off_ ? 0 : 1; }
    void write_out(TimePoint now);
    void learn(ReaderWatch::Change change);
    void switch_off(int error);
    void mark_gap();
    [[nodiscard]] std::string reason() const;

    std::string name_;
    Duration patience_;
    ConsoleDescriptor descriptor_;
    ConsoleText text_;
    ReaderWatch watch_;

    bool off_ = false;
    bool obituary_due_ = false;
    bool poll_wish_ = false;
    bool gap_due_ = false;
    int refusals_ = 0;
    int error_ = 0;  // of the last failure; 0: the reader just took nothing
    std::optional<TimePoint> retry_at_;
    std::uint64_t dropped_ = 0;
    std::uint64_t announced_ = 0;  // of them, in gap markers
};

}  // namespace ddrun::launcher
