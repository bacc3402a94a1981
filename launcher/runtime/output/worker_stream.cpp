#include "launcher/runtime/output/worker_stream.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ddrun::launcher {

namespace {

constexpr std::size_t tail_bytes = 16u << 10;  // 20 lines of 800 bytes; 256 workers: 4 MiB
constexpr std::size_t least_read = 4096;
constexpr std::size_t grown_pipe = 256u << 10;
constexpr int full_reads_before_growth = 4;
constexpr std::size_t time_size = 24;  // what ${time} may add to a prefix

std::string_view text_of(LinePrefix& prefix) {
    return prefix.at(prefix.has_time() ? std::chrono::system_clock::now()
                                       : std::chrono::system_clock::time_point{});
}

}  // namespace

WorkerStream::WorkerStream(StreamPlan plan, Sinks sinks, Console::Owner owner,
                           std::size_t line_limit)
    : pipe_(plan.read_end),
      sinks_(std::move(sinks)),
      console_(sinks_.console),
      owner_(owner),
      prefix_(std::move(plan.prefix)),
      filters_(std::move(plan.duplicate_filters)),
      duplicate_prefix_(std::move(plan.duplicate_prefix)),
      cutter_(line_limit),
      tail_(tail_bytes),
      prefix_size_(prefix_.at({}).size() + time_size) {
    // Our end of the pipe has a description of its own; the worker's end does not notice.
    if (pipe_) ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
}

WorkerStream::Read WorkerStream::read(std::span<char> buffer, TimePoint now, PipeGrowth& growth) {
    ssize_t n;
    do {
        n = ::read(pipe_.get(), buffer.data(), buffer.size());
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) return {Read::State::nothing};
    if (n <= 0) return {Read::State::ended};
    const auto got = static_cast<std::size_t>(n);
    consider_growth(got, growth);
    pass_on({buffer.data(), got}, now);
    return {got == buffer.size() ? Read::State::all_asked : Read::State::less, got};
}

void WorkerStream::close(TimePoint now) {
    if (!pipe_) return;
    pipe_.reset();
    if (!needs_lines()) return;
    const std::string_view prefix = text_of(prefix_);
    cutter_.flush([&](std::string_view unit, LineEnd end) { emit(unit, end, prefix); });
    write_duplicates(now);
    if (console_) console_->settle(owner_);
}

std::size_t WorkerStream::read_size(std::size_t most) const {
    if (!console_) return most;
    const std::size_t fits = console_->room() / (1 + prefix_size_);
    return std::clamp(fits, least_read, most);
}

std::size_t WorkerStream::bytes_in_pipe() const {
    int bytes = 0;
    return ::ioctl(pipe_.get(), FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

void WorkerStream::forget_tail() {
    if (std::exchange(keeps_tail_, false)) tail_.clear();
}

void WorkerStream::pass_on(std::string_view bytes, TimePoint now) {
    if (keeps_tail_) tail_.add(bytes);
    if (sinks_.file) sinks_.file->write(bytes, now);
    if (!needs_lines()) return;
    const std::string_view prefix = text_of(prefix_);
    cutter_.feed(bytes, [&](std::string_view unit, LineEnd end) { emit(unit, end, prefix); });
    if (console_ && cutter_.unfinished_is_progress())
        console_->preview(owner_, prefix, cutter_.unfinished());
    write_duplicates(now);
}

// One write for all of a read, so that lines of several streams do not mix in the shared file.
void WorkerStream::write_duplicates(TimePoint now) {
    if (duplicated_.empty()) return;
    sinks_.duplicates->write(duplicated_, now);
    duplicated_.clear();
}

void WorkerStream::emit(std::string_view unit, LineEnd end, std::string_view prefix) {
    if (console_) show(unit, end, prefix);
    if (sinks_.duplicates) [[unlikely]]
        collect_duplicate(unit, end);
}

void WorkerStream::show(std::string_view unit, LineEnd end, std::string_view prefix) {
    switch (end) {
        case LineEnd::newline:
            return console_->line(owner_, prefix, unit);
        case LineEnd::carriage_return:
            return console_->progress(owner_, prefix, unit);
        case LineEnd::none:
            return console_->piece(owner_, prefix, unit);
    }
}

void WorkerStream::collect_duplicate(std::string_view unit, LineEnd end) {
    const auto matches = [unit](const std::string& filter) {
        return unit.find(filter) != unit.npos;
    };
    if (std::none_of(filters_.begin(), filters_.end(), matches)) return;
    duplicated_.append(text_of(duplicate_prefix_)).append(unit);
    if (end != LineEnd::newline) duplicated_ += '\n';
}

bool WorkerStream::needs_lines() const {
    return sinks_.duplicates || (console_ && !console_->off());
}

void WorkerStream::consider_growth(std::size_t got, PipeGrowth& growth) {
    if (got < pipe_size_ / 2) {
        full_reads_ = 0;
        return;
    }
    if (growth.left <= 0 || pipe_size_ >= grown_pipe || ++full_reads_ < full_reads_before_growth)
        return;
    --growth.left;
    // Refused (the user's limit): nobody tries again, 64 KiB serve as well.
    if (::fcntl(pipe_.get(), F_SETPIPE_SZ, static_cast<int>(grown_pipe)) < 0) growth.left = 0;
    pipe_size_ = grown_pipe;
}

}  // namespace ddrun::launcher
