#include "launcher/runtime/output/console.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddrun::launcher {

namespace {

constexpr Duration retry_pause = std::chrono::seconds(1);
constexpr int refusals_before_enlarging = 16;
constexpr Console::Owner ddrun_itself = 0;

std::string lines_word(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " line" : " lines");
}

ProgressStyle style_for(const ConsoleOptions& options, const ConsoleDescriptor& descriptor) {
    const bool redraw = options.redraws_progress && descriptor.is_terminal();
    return redraw ? ProgressStyle::redraw : ProgressStyle::pass_on;
}

}  // namespace

Console::Console(const ConsoleOptions& options)
    : name_(options.name),
      patience_(options.patience),
      descriptor_(options.fd),
      text_(options.buffer, style_for(options, descriptor_)),
      watch_(options.patience),
      off_(descriptor_.closed()) {}

void Console::piece(Owner owner, std::string_view prefix, std::string_view text) {
    if (refuses()) return drop();
    text_.piece(owner, prefix, text);
}

void Console::progress(Owner owner, std::string_view prefix, std::string_view text) {
    if (refuses()) return drop();
    text_.progress(owner, prefix, text);
}

void Console::preview(Owner owner, std::string_view prefix, std::string_view text) {
    if (!refuses()) text_.preview(owner, prefix, text);
}

void Console::settle(Owner owner) {
    if (!off_) text_.settle(owner);
}

void Console::say(std::string_view line) {
    if (off_) return;
    if (text_.size() > 2 * text_.limit()) return drop();
    if (line.ends_with('\n')) {
        text_.line(ddrun_itself, {}, line);
    } else {
        text_.piece(ddrun_itself, {}, line);
    }
}

std::size_t Console::room() const {
    return off_ || watch_.given_up() ? SIZE_MAX : text_.room();
}

void Console::flush(TimePoint now) {
    if (off_ || (retry_at_ && now < *retry_at_)) return;
    retry_at_.reset();
    write_out(now);
    // Before any new line: streams wait as long as the text is full.
    if (!gap_due_ || text_.full()) return;
    mark_gap();
    write_out(now);
}

void Console::write_out(TimePoint now) {
    const std::string_view bytes = text_.front();
    if (bytes.empty()) return;
    const auto written = descriptor_.write(bytes);
    text_.taken(written.bytes);
    if (written.bytes > 0) learn(watch_.step(ReaderWatch::Event::took, now));
    switch (written.state) {
        case ConsoleDescriptor::State::open:
            break;
        case ConsoleDescriptor::State::refused:
            poll_wish_ = true;
            if (++refusals_ == refusals_before_enlarging) descriptor_.enlarge();
            learn(watch_.step(ReaderWatch::Event::refused, now));
            break;
        case ConsoleDescriptor::State::failed:
            error_ = written.error;
            retry_at_ = now + retry_pause;
            learn(watch_.step(ReaderWatch::Event::failed, now));
            break;
        case ConsoleDescriptor::State::gone:
            switch_off(written.error);
            break;
    }
}

void Console::advance_to(TimePoint now) {
    if (retry_at_ && now >= *retry_at_) flush(now);
    const auto deadline = watch_.next_deadline();
    if (!deadline || now < *deadline) return;
    // After a stop of ddrun itself (Ctrl-Z) the clock ran on while nobody tried: try before
    // judging.
    flush(now);
    learn(watch_.advance_to(now));
}

std::optional<TimePoint> Console::next_deadline() const {
    if (off_) return std::nullopt;
    return retry_at_ ? retry_at_ : watch_.next_deadline();
}

bool Console::take_poll_wish() {
    return std::exchange(poll_wish_, false) && !off_;
}

void Console::learn(ReaderWatch::Change change) {
    switch (change) {
        case ReaderWatch::Change::none:
        case ReaderWatch::Change::gave_up:
            break;
        case ReaderWatch::Change::moves_again:
            gap_due_ = dropped_ > announced_;
            break;
    }
}

void Console::mark_gap() {
    gap_due_ = false;
    text_.piece(ddrun_itself, {},
                "ddrun: " + lines_word(dropped_ - announced_) + " dropped here (" + reason() + ")");
    announced_ = dropped_;
}

void Console::switch_off(int error) {
    off_ = true;
    obituary_due_ = true;
    error_ = error;
    retry_at_.reset();
    text_.taken(text_.size());
}

void Console::close() {
    dropped_ += text_.lines();
    text_.taken(text_.size());
    descriptor_.release();
}

std::string Console::reason() const {
    if (error_ != 0) return std::strerror(error_);
    const auto seconds = std::chrono::duration<double>(patience_).count();
    std::string text = std::to_string(seconds);
    text.resize(text.find('.') + 2);
    return "its reader took nothing for " + text + " s";
}

std::optional<std::string> Console::loss() const {
    std::string words;
    // Nobody takes what waits here; whoever asks now should know it as lost.
    const auto lost = dropped_ + (watch_.given_up() ? text_.lines() : 0);
    if (lost > 0) words = lines_word(lost) + " dropped (" + reason() + ")";
    if (off_ && !descriptor_.closed()) {
        if (!words.empty()) words += ", then ";
        words += std::string("switched off (") + std::strerror(error_) + ")";
    }
    if (words.empty()) return std::nullopt;
    return name_ + ": " + words;
}

std::optional<std::string> Console::take_obituary() {
    if (!std::exchange(obituary_due_, false)) return std::nullopt;
    return "ddrun: " + name_ + " is gone (" + std::strerror(error_) + "); log files go on";
}

}  // namespace ddrun::launcher
