#include "launcher/keeper/keeper_loop.hpp"

#include "launcher/keeper/descendants.hpp"
#include "launcher/keeper/inspect.hpp"
#include "launcher/keeper/proc.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace ddrun::launcher::keeper {
namespace {

// What an epoll event is about: a kind, and for two of them a worker's pid.
constexpr std::uint64_t link_event = 0;
constexpr std::uint64_t child_event = 1;
constexpr std::uint64_t exit_event = 2;
constexpr std::uint64_t report_event = 3;
constexpr std::uint64_t kind_mask = 3;
std::uint64_t about(std::uint64_t kind, pid_t pid) {
    return static_cast<std::uint64_t>(pid) << 2 | kind;
}

int checked(int result, const char* call) {
    if (result < 0) throw std::system_error(errno, std::generic_category(), call);
    return result;
}

int child_signal_descriptor() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    return checked(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd");
}

}  // namespace

KeeperLoop::KeeperLoop(UniqueFd link, const SpawnSettings& spawning, const WorkerDefaults& defaults)
    : spawning_(spawning),
      defaults_(defaults),
      link_(link.release()),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      child_signals_(child_signal_descriptor()) {
    watch(link_.fd(), EPOLLIN | EPOLLRDHUP, link_event);
    watch(child_signals_.get(), EPOLLIN, child_event);
}

// --- the wait -----------------------------------------------------------------------------------
KeeperLoop::End KeeperLoop::run() {
    std::array<epoll_event, 64> events;
    while (!end_) {
        const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms());
        for (int i = 0; i < ready && !end_; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            handle(event.data.u64, event.events);
        }
        if (more_to_reap_) reap();
        advance(Clock::now());
        send_news();
    }
    return *end_;
}

void KeeperLoop::watch(int fd, std::uint32_t events, std::uint64_t what) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = what;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event), "epoll_ctl");
    }
}

// Closing is not enough: a child between its fork and its exec may hold a copy, and the events
// would go on.
void KeeperLoop::unwatch(UniqueFd& fd) {
    if (fd) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
    fd.reset();
}

int KeeperLoop::wait_ms() const {
    if (more_to_reap_) return 0;
    auto next = Clock::time_point::max();
    for (const CleaningUp& clean_up : clean_ups_) next = std::min(next, clean_up.next_look());
    if (ending_ && clean_ups_.empty()) next = std::min(next, ending_->next_pass());
    next = std::min(next, next_lease_step());
    if (next == Clock::time_point::max()) return -1;
    const auto wait = std::chrono::ceil<Milliseconds>(next - Clock::now());
    return static_cast<int>(std::max<Milliseconds::rep>(wait.count(), 0));
}

void KeeperLoop::handle(std::uint64_t what, std::uint32_t events) {
    const auto pid = static_cast<pid_t>(what >> 2);
    const std::uint64_t kind = what & kind_mask;
    if (kind == link_event) {
        read_link(events);
    } else if (kind == child_event) {
        signalfd_siginfo ignored{};
        while (::read(child_signals_.get(), &ignored, sizeof(ignored)) > 0) {
        }
        reap();
    } else if (kind == exit_event) {
        // A worker's end is noticed even while a flood of orphans is being reaped.
        if (workers_.contains(pid)) reap_one(pid);
    } else if (const auto worker = workers_.find(pid); worker != workers_.end()) {
        read_report(worker->second);
    }
}

void KeeperLoop::advance(Clock::time_point now) {
    pursue_clean_ups(now);
    pursue_round_ending(now);
    pursue_lease(now);
}

// --- the agent ----------------------------------------------------------------------------------
void KeeperLoop::read_link(std::uint32_t events) {
    const bool hung_up = (events & (EPOLLHUP | EPOLLRDHUP)) != 0;
    do {
        for (const std::string& body : link_.receive()) {
            const auto message = decode_to_keeper(body);
            if (!message) {
                end_ = End::agent_gone;
                return;
            }
            // A dead agent's last orders are void, but for what must not be forgotten.
            const bool matters = !hung_up || std::holds_alternative<Remove>(*message) ||
                                 std::holds_alternative<LastWords>(*message) ||
                                 std::holds_alternative<Quit>(*message);
            if (matters) std::visit([this](const auto& order) { obey(order); }, *message);
        }
    } while (hung_up && !link_.closed());
    if ((hung_up || link_.closed()) && !end_) end_ = End::agent_gone;
}

void KeeperLoop::tell(const FromKeeper& message) {
    link_.post(encode(message));
}

void KeeperLoop::send_news() {
    link_.flush();
    const bool wanted = link_.wants_write();
    if (std::exchange(write_watched_, wanted) != wanted) {
        watch(link_.fd(), EPOLLIN | EPOLLRDHUP | (wanted ? EPOLLOUT : 0u), link_event);
    }
}

void KeeperLoop::obey(const Spawn& order) {
    const std::vector<UniqueFd> streams = link_.take_descriptors(spawn_descriptors);
    if (ending_) {
        tell(NotSpawned{order.round, order.plan.local_rank, EBUSY, "fork", ""});
        return;
    }
    if (!ended_.empty() && ended_.begin()->second.round != order.round) ended_.clear();
    SpawnResult result = spawn_worker(order, streams, spawning_);
    if (result.pid < 0) {
        tell(NotSpawned{order.round, order.plan.local_rank, result.refused.error_number,
                        std::move(result.refused.stage), ""});
        return;
    }
    childless_ = false;
    Worker worker;
    worker.round = order.round;
    worker.local_rank = order.plan.local_rank;
    worker.pid = result.pid;
    const auto tag = order.plan.environment.find(std::string(variable::worker_tag));
    if (tag != order.plan.environment.end()) worker.tag = tag->second;
    worker.command = command_line(order.plan.argv);
    worker.report = std::move(result.report);
    worker.terminal = std::move(result.terminal);
    worker.modes = result.modes;
    worker.handle = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, worker.pid, 0)));
    // Without a handle (no descriptor left) SIGCHLD still tells of the end.
    if (worker.handle) watch(worker.handle.get(), EPOLLIN, about(exit_event, worker.pid));
    watch(worker.report.get(), EPOLLIN, about(report_event, worker.pid));
    workers_.emplace(worker.pid, std::move(worker));
}

void KeeperLoop::obey(const Signal& order) {
    for (const auto& [pid, worker] : workers_) {
        const auto& ranks = order.local_ranks;
        const bool meant = ranks.empty() ||
                           std::find(ranks.begin(), ranks.end(), worker.local_rank) != ranks.end();
        if (worker.round != order.round || !meant) continue;
        // Before its setsid() a worker leads no group yet.
        if (!order.whole_group || ::kill(-pid, order.signal) != 0) ::kill(pid, order.signal);
    }
}

void KeeperLoop::obey(const KillRound& order) {
    reap();
    const auto now = Clock::now();
    ending_.emplace(order, Milliseconds(defaults_.stuck_after_ms), now);
    workers_.empty() ? ending_->workers_gone(now) : clean_ups_.clear();
}

void KeeperLoop::obey(const CleanUp& order) {
    const auto ended = ended_.find(order.local_rank);
    if (ended == ended_.end() || ended->second.round != order.round || ending_) return;
    clean_ups_.emplace_back(ended->second, Milliseconds(defaults_.leftover_grace_ms),
                            Milliseconds(defaults_.stuck_after_ms), Clock::now());
}

void KeeperLoop::obey(const Inspect& order) {
    Inspected answer{order.round, order.local_rank, "has ended"};
    for (const auto& [pid, worker] : workers_) {
        const bool meant = worker.round == order.round && worker.local_rank == order.local_rank;
        if (meant) answer.words = inspect_process(pid, worker.command);
    }
    tell(answer);
}

void KeeperLoop::obey(const Suspend& order) {
    suspended_ = order.stop;
    // An agent that was stopped itself may say "go on" before it notices that its lease has ended.
    frozen_ = !order.stop && lease_ended(Clock::now());
    if (frozen_) return;
    // The terminal first: a worker that goes on without it would be stopped by its next read.
    for (auto& [pid, worker] : workers_) {
        order.stop ? return_terminal(worker) : give_terminal(worker);
    }
    signal_trees(order.stop ? SIGSTOP : SIGCONT);
    if (order.stop) tell(Suspended{});
}

void KeeperLoop::obey(const Remove& order) {
    paths_.insert(order.paths.begin(), order.paths.end());
}

void KeeperLoop::obey(const Quit&) {
    end_ = End::quit;
}

}  // namespace ddrun::launcher::keeper
