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

// For all unfinished lines together, and what each may have at least.
constexpr std::size_t line_memory = 8u << 20;
constexpr std::size_t least_line_limit = 4096;
constexpr Duration holder_grace = std::chrono::seconds(1);

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
      read_buffer_(new char[read_bytes]),
      line_limit_(options.line_limit) {
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
        const auto is_it = [&event](const auto& each) { return event.data.ptr == each.get(); };
        if (event.data.ptr == &wake_) {
            commands = true;
        } else if (std::none_of(consoles_.begin(), consoles_.end(), is_it)) {
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
    share_line_memory();
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
    return {std::move(plan), std::move(sinks), next_owner_++, line_limit_};
}

std::shared_ptr<LogFile> RelayLoop::file_at(const std::string& path) {
    auto& file = files_[path];
    if (!file) file = std::make_shared<LogFile>(path, now_);
    report_failure(file.get());
    return file;
}

void RelayLoop::share_line_memory() {
    const std::size_t streams = std::max<std::size_t>(1, 2 * workers_.size());
    const std::size_t share = std::max(least_line_limit, line_memory / streams);
    const std::size_t limit = std::min(options_.line_limit, share);
    if (std::exchange(line_limit_, limit) == limit) return;
    for (const auto& [key, worker] : workers_)
        for (Source* source : worker->sources()) source->limit_lines(limit);
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

// Taken out of epoll by name: a child between fork and exec may hold a copy of the descriptor, and
// then closing ours would leave events that point to nothing.
void RelayLoop::close(Source& source) {
    if (!source.open()) return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.fd(), nullptr);
    source.close(now_);
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
