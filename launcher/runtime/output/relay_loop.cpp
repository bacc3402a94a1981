#include "launcher/runtime/output/relay_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace ddrun::launcher {

namespace {

// One read: small enough to stay in the cache until it is written, large enough to make calls rare.
constexpr std::size_t read_bytes = 256u << 10;
// A console is written to when so much waits, and at the end of each turn.
constexpr std::size_t flush_bytes = 256u << 10;
constexpr Duration holder_grace = std::chrono::seconds(1);
constexpr Duration activity_pause = std::chrono::seconds(1);

bool understands_erase_line() {
    const char* terminal = std::getenv("TERM");
    return terminal && *terminal && std::string_view(terminal) != "dumb";
}

int checked(int fd, const char* what) {
    if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
    return fd;
}

// Consoles first: if one is closed, a new descriptor could take its number.
std::vector<std::unique_ptr<Console>> open_consoles(const RelayOptions& options) {
    const bool shared = ConsoleDescriptor::same_target(options.console_out, options.console_err);
    std::vector<std::unique_ptr<Console>> consoles;
    ConsoleOptions console{options.console_out, shared ? "console" : "stdout",
                           options.console_buffer, options.reader_patience,
                           understands_erase_line()};
    consoles.push_back(std::make_unique<Console>(console));
    if (shared) return consoles;
    console.fd = options.console_err;
    console.name = "stderr";
    consoles.push_back(std::make_unique<Console>(console));
    return consoles;
}

}  // namespace

RelayLoop::RelayLoop(const RelayOptions& options, RelayCallbacks callbacks)
    : options_(options),
      callbacks_(std::move(callbacks)),
      consoles_(open_consoles(options)),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "output thread: epoll_create1")),
      wake_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "output thread: eventfd")),
      read_buffer_(new char[read_bytes]) {
    epoll_event event{EPOLLIN, {.ptr = &wake_}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
    for (const auto& each : consoles_) {
        if (each->poll_fd() < 0) continue;
        event = {EPOLLONESHOT, {.ptr = each.get()}};
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, each->poll_fd(), &event);
    }
}

void RelayLoop::post(Command command) {
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        wake = mailbox_.empty();
        mailbox_.push_back(std::move(command));
    }
    const std::uint64_t one = 1;
    if (wake) (void)!::write(wake_.get(), &one, sizeof one);
}

void RelayLoop::run() {
    while (!finished() && !abandoned_) {
        wait();
        serve_ready();
        close_ended();
        serve_consoles();
        beats_.fetch_add(1, std::memory_order_relaxed);
    }
    for (const auto& console : consoles_) console->close();
    workers_.clear();
    release_unused_files();
}

bool RelayLoop::finished() const {
    if (!finishing_ || !workers_.empty()) return false;
    return std::all_of(consoles_.begin(), consoles_.end(), [](auto& each) { return each->done(); });
}

void RelayLoop::wait() {
    now_ = std::chrono::steady_clock::now();
    std::array<epoll_event, 64> events;
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
    now_ = std::chrono::steady_clock::now();
    bool commands = false;
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        const auto is_event = [&event](const auto& each) { return event.data.ptr == each.get(); };
        if (event.data.ptr == &wake_) {
            commands = true;
        } else if (std::none_of(consoles_.begin(), consoles_.end(), is_event)) {
            auto& source = *static_cast<Source*>(event.data.ptr);
            source.hung_up |= (event.events & (EPOLLHUP | EPOLLERR)) != 0;
            mark_ready(source);
        }
    }
    // Commands last: they may remove workers that events point to.
    if (commands) take_commands();
}

int RelayLoop::timeout_ms() const {
    if (finished()) return 0;
    const auto readable = [](const Source* each) { return !each->must_wait(); };
    if (std::any_of(ready_.begin(), ready_.end(), readable)) return 0;
    std::optional<TimePoint> next;
    const auto consider = [&next](std::optional<TimePoint> at) {
        if (at && (!next || *at < *next)) next = at;
    };
    for (const auto& console : consoles_) consider(console->next_deadline());
    // A deadline that has passed waits for a console's room, not for a time.
    for (const Worker* worker : ending_)
        if (*worker->close_at > now_) consider(worker->close_at);
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now_).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void RelayLoop::take_commands() {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    std::vector<Command> commands;
    {
        const std::lock_guard lock(mutex_);
        commands.swap(mailbox_);
    }
    for (Command& command : commands) std::visit([this](auto& each) { perform(each); }, command);
}

void RelayLoop::perform(WorkerStreams& streams) {
    const Key key{streams.round, streams.local_rank};
    assert(!workers_.contains(key));
    std::erase_if(tails_, [&key](const auto& each) { return each.first.first + 1 < key.first; });
    Console& out = *consoles_.front();
    Console& err = *consoles_.back();
    auto worker =
        std::make_unique<Worker>(key, make_stream(streams.out, out), make_stream(streams.err, err));
    for (Source* source : worker->sources()) watch(*source);
    workers_[key] = std::move(worker);
    if (finishing_) end(*workers_[key], now_);
}

void RelayLoop::perform(WorkerEnded& ended) {
    const auto found = workers_.find({ended.round, ended.local_rank});
    if (found != workers_.end()) {
        end(*found->second, now_ + holder_grace);
    } else if (callbacks_.drained) {
        callbacks_.drained(ended.round, ended.local_rank);
    }
}

void RelayLoop::perform(Say& say) {
    consoles_.back()->say(say.line);
}

void RelayLoop::perform(Question& question) {
    question(*this);
}

void RelayLoop::perform(Finish&) {
    finishing_ = true;
    for (const auto& [key, worker] : workers_) end(*worker, now_);
}

WorkerStream RelayLoop::make_stream(StreamPlan& plan, Console& console) {
    WorkerStream::Sinks sinks;
    if (plan.to_console) sinks.console = &console;
    if (!plan.file.empty()) sinks.file = file_at(plan.file);
    if (!plan.duplicate_file.empty()) sinks.duplicates = file_at(plan.duplicate_file);
    return {std::move(plan), std::move(sinks), next_owner_++, options_.line_limit};
}

std::shared_ptr<LogFile> RelayLoop::file_at(const std::string& path) {
    auto& file = files_[path];
    if (!file) file = std::make_shared<LogFile>(path, now_);
    report_failure(file.get());
    return file;
}

void RelayLoop::watch(Source& source) {
    if (!source.open()) return;
    epoll_event event{EPOLLIN | EPOLLET, {.ptr = static_cast<void*>(&source)}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, source.fd(), &event) != 0) source.hung_up = true;
    mark_ready(source);
}

// From now on no edge is waited for: what is in the pipe is read at once.
void RelayLoop::end(Worker& worker, TimePoint close_at) {
    if (!worker.close_at) ending_.push_back(&worker);
    worker.close_at = worker.close_at ? std::min(*worker.close_at, close_at) : close_at;
    for (Source* source : worker.sources()) {
        if (!source->open()) continue;
        source->owed = source->bytes_in_pipe();
        mark_ready(*source);
    }
}

void RelayLoop::mark_ready(Source& source) {
    if (!std::exchange(source.ready, true)) ready_.push_back(&source);
}

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
            source.close(now_);
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
        if (source->open() && now_ >= *worker.close_at && source->owed == 0) source->close(now_);
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

std::vector<std::string> RelayLoop::tail(int round, int local_rank) const {
    const Key key{round, local_rank};
    if (const auto ended = tails_.find(key); ended != tails_.end()) return ended->second;
    const auto found = workers_.find(key);
    if (found == workers_.end()) return {};
    return found->second->tail().lines(static_cast<std::size_t>(std::max(options_.tail_lines, 0)));
}

std::vector<std::string> RelayLoop::losses() const {
    std::vector<std::string> all;
    for (const auto& console : consoles_)
        if (auto loss = console->loss()) all.push_back(std::move(*loss));
    all.insert(all.end(), file_losses_.begin(), file_losses_.end());
    for (const auto& [path, file] : files_)
        if (auto loss = file->loss()) all.push_back(std::move(*loss));
    return all;
}

}  // namespace ddrun::launcher
