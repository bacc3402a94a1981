#include "launcher/runtime/output/relay_loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <span>

// What the loop does in each turn: reads, writes, ends. Setting up and commands are in
// relay_loop.cpp.
namespace ddrun::launcher {

namespace {

// A console is written to when so much waits, and at the end of each turn.
constexpr std::size_t flush_bytes = 256u << 10;
// Well below the shortest sensible --hang-timeout, rare enough to cost nothing.
constexpr Duration activity_pause = std::chrono::milliseconds(100);

}  // namespace

void RelayLoop::serve_ready() {
    std::erase_if(ready_, [this](Source* source) {
        if (source->open() && source->must_wait()) return false;
        if (source->open() && serve(*source)) return false;
        source->ready = false;
        return true;
    });
}

// One read; true when another may find something without a new edge.
bool RelayLoop::serve(Source& source) {
    const std::span buffer(read_buffer_.get(), source.read_size(read_bytes));
    const auto read = source.read(buffer, now_, growth_);
    source.owed -= std::min(source.owed, read.bytes);
    if (read.bytes > 0) note_activity(source);
    report_failure(source.sinks().file.get());
    report_failure(source.sinks().duplicates.get());
    for (const auto& console : consoles_)
        if (console->waiting_bytes() >= flush_bytes) console->flush(now_);
    switch (read.state) {
        case WorkerStream::Read::State::all_asked:
            return true;
        case WorkerStream::Read::State::less:
            return source.hung_up || source.worker->close_at;
        case WorkerStream::Read::State::nothing:
            source.owed = 0;
            return false;
        case WorkerStream::Read::State::ended:
            source.owed = 0;
            close(source);
            return false;
    }
    return false;
}

void RelayLoop::note_activity(Source& source) {
    Worker& worker = *source.worker;
    if (&source == &worker.err) worker.out.forget_tail();
    if (now_ < worker.active_after) return;
    worker.active_after = now_ + activity_pause;
    if (callbacks_.active && !abandoned_) callbacks_.active(worker.key.first, worker.key.second);
}

void RelayLoop::close_ended() {
    std::erase_if(ending_, [this](Worker* worker) {
        if (!close_if_due(*worker)) return false;
        forget(*worker);
        return true;
    });
}

bool RelayLoop::close_if_due(Worker& worker) {
    bool closed = true;
    for (Source* source : worker.sources()) {
        if (source->open() && now_ >= *worker.close_at && source->owed == 0) close(*source);
        closed = closed && !source->open();
    }
    return closed;
}

void RelayLoop::forget(Worker& worker) {
    const Key key = worker.key;
    const auto most = static_cast<std::size_t>(std::max(options_.tail_lines, 0));
    tails_[key] = worker.tail().lines(most);
    std::erase_if(ready_, [&worker](Source* source) { return source->worker == &worker; });
    workers_.erase(key);
    share_line_memory();
    release_unused_files();
    if (callbacks_.drained && !abandoned_) callbacks_.drained(key.first, key.second);
}

void RelayLoop::release_unused_files() {
    std::erase_if(files_, [this](auto& entry) {
        LogFile& file = *entry.second;
        if (entry.second.use_count() > 1) return false;
        file.close(now_);
        report_failure(&file);
        if (auto loss = file.loss()) file_losses_.push_back(std::move(*loss));
        return true;
    });
}

void RelayLoop::serve_consoles() {
    const bool last_lines = finishing_ && workers_.empty();
    for (const auto& console : consoles_) {
        if (last_lines) console->settle_all();
        console->flush(now_);
        console->advance_to(now_);
        if (const auto line = console->take_obituary()) write_obituary(*line);
        if (!console->take_poll_wish()) continue;
        epoll_event event{EPOLLOUT | EPOLLONESHOT, {.ptr = console.get()}};
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, console->poll_fd(), &event);
    }
}

// The console cannot say it: one log file does, an error stream's where there is one.
void RelayLoop::write_obituary(const std::string& line) {
    LogFile* file = nullptr;
    for (const auto& [key, worker] : workers_) {
        const auto& out = worker->out.sinks().file;
        const auto& err = worker->err.sinks().file;
        if (err) return err->note(line, now_);
        if (out && !file) file = out.get();
    }
    if (file) file->note(line, now_);
}

void RelayLoop::report_failure(LogFile* file) {
    if (!file) return;
    const auto words = file->take_first_failure();
    if (words && callbacks_.file_failed && !abandoned_)
        callbacks_.file_failed(file->path(), *words);
}

}  // namespace ddrun::launcher
