#pragma once

#include "launcher/runtime/output/console.hpp"
#include "launcher/runtime/output/line_cutter.hpp"
#include "launcher/runtime/output/log_file.hpp"
#include "launcher/runtime/output/output_relay.hpp"
#include "launcher/runtime/output/prefix_template.hpp"
#include "launcher/runtime/output/tail_buffer.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ddrun::launcher {

// How many pipes may be made larger: their pages count against the user (fs.pipe-user-pages-soft),
// and past that limit every new pipe of the user would be a tiny one.
struct PipeGrowth {
    int left = 32;
};

// One stream of one worker: from its pipe to file, tail, duplicates and console. Output thread
// only.
class WorkerStream {
  public:
    struct Sinks {
        Console* console = nullptr;           // null: this stream is not shown
        std::shared_ptr<LogFile> file;        // null: none
        std::shared_ptr<LogFile> duplicates;  // null: none
    };
    struct Read {
        enum class State {
            all_asked,  // the buffer is full, more may be there
            less,       // the pipe was empty after it
            nothing,    // the pipe is empty
            ended,      // nobody can write to it any more
        };
        State state = State::nothing;
        std::size_t bytes = 0;
    };

    // `owner` is unique among all streams and not 0.
    WorkerStream(StreamPlan plan, Sinks sinks, Console::Owner owner, std::size_t line_limit);

    // One read of at most `buffer`, passed on at once.
    [[nodiscard]] Read read(std::span<char> buffer, TimePoint now, PipeGrowth& growth);
    // The unfinished line goes out with a newline; the pipe is closed. Idempotent.
    void close(TimePoint now);

    [[nodiscard]] bool open() const { return static_cast<bool>(pipe_); }
    [[nodiscard]] int fd() const { return pipe_.get(); }
    [[nodiscard]] bool must_wait() const { return console_ && console_->must_wait(); }
    // How much to read so that the console's share of it fits, however short its lines are.
    [[nodiscard]] std::size_t read_size(std::size_t most) const;
    [[nodiscard]] std::size_t bytes_in_pipe() const;

    void limit_lines(std::size_t line_limit) { cutter_.limit_to(line_limit); }
    [[nodiscard]] const TailBuffer& tail() const { return tail_; }
    void forget_tail();
    [[nodiscard]] const Sinks& sinks() const { return sinks_; }

  private:
    void pass_on(std::string_view bytes, TimePoint now);
    void emit(std::string_view unit, LineEnd end, std::string_view prefix);
    void show(std::string_view unit, LineEnd end, std::string_view prefix);
    void collect_duplicate(std::string_view unit, LineEnd end);
    void write_duplicates(TimePoint now);
    [[nodiscard]] bool needs_lines() const;
    void consider_growth(std::size_t got, PipeGrowth& growth);

    UniqueFd pipe_;
    Sinks sinks_;
    Console* console_;
    Console::Owner owner_;
    LinePrefix prefix_;
    std::vector<std::string> filters_;
    LinePrefix duplicate_prefix_;
    std::string duplicated_;  // matching lines of this read
    LineCutter cutter_;
    TailBuffer tail_;
    bool keeps_tail_ = true;
    std::size_t prefix_size_;
    std::size_t pipe_size_ = 64u << 10;
    int full_reads_ = 0;
};

}  // namespace ddrun::launcher
