#include "launcher/keeper/keeper_loop.hpp"
#include "launcher/keeper/proc.hpp"
#include "rendezvous/protocol/worker_env.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

// The half of KeeperLoop that deals with processes.
namespace ddrun::launcher::keeper {
namespace {

// Children reaped in one turn of the loop, so that a flood of orphans does not keep the agent
// waiting.
constexpr int reap_budget = 256;

// A worker stopped and continued in a tight loop must not fill our memory while the agent is busy.
constexpr std::size_t enough_queued = 1u << 20;

constexpr auto enough_between_stops = std::chrono::seconds(1);

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
        .count();
}

}  // namespace

void KeeperLoop::reap() {
    more_to_reap_ = false;
    for (int i = 0; i < reap_budget; ++i) {
        if (!reap_one(-1)) return;
    }
    more_to_reap_ = true;
}

// Nobody else reaps, so a worker's number is its own until this has taken it out of `workers_`; an
// unknown number is an orphan that the kernel gave to us.
bool KeeperLoop::reap_one(pid_t which) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(which, &status, WNOHANG | WUNTRACED | WCONTINUED | __WALL, &usage);
    if (which == -1) childless_ = pid < 0 && errno == ECHILD;
    if (pid <= 0) return false;
    const auto worker = workers_.find(pid);
    if (worker == workers_.end()) return true;
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        on_stop_or_continue(worker->second, status);
    } else {
        on_exit(worker, status, usage);
    }
    return true;
}

void KeeperLoop::on_exit(Workers::iterator entry, int status, const rusage& usage) {
    const std::int64_t at = now_ns();
    Worker worker = std::move(entry->second);
    read_report(worker);
    unwatch(worker.report);
    unwatch(worker.handle);
    workers_.erase(entry);
    if (WIFSIGNALED(status)) restore_modes(worker);
    return_terminal(worker);
    if (worker.failure) {
        tell(NotSpawned{worker.round, worker.local_rank, worker.failure->error_number,
                        worker.failure->stage, std::move(worker.failure->path)});
    } else {
        tell(Exited{worker.round, worker.local_rank, worker.pid, status, at, usage.ru_maxrss});
        ended_[worker.local_rank] = {worker.round, worker.local_rank, worker.pid,
                                     std::move(worker.tag)};
    }
    if (workers_.empty() && ending_) ending_->workers_gone(Clock::now());
}

void KeeperLoop::on_stop_or_continue(Worker& worker, int status) {
    const bool stopped = WIFSTOPPED(status);
    if (stopped && !suspended_ && worker.terminal) pass_on_terminal_stop(worker, WSTOPSIG(status));
    // What Suspend causes is no news; nor is the end of a stop that was not told.
    if (stopped ? suspended_ : !worker.stop_was_told) return;
    if (link_.queued_bytes() > enough_queued) return;
    worker.stop_was_told = stopped;
    tell(StoppedOrContinued{worker.round, worker.local_rank, stopped});
}

// The terminal sent it to the group it was lent to; it is meant for the job, which the shell knows.
// A job in the background that nobody can bring to the front would read, stop and go on for ever.
void KeeperLoop::pass_on_terminal_stop(const Worker& worker, int signal) {
    const bool from_read_or_write = signal == SIGTTIN || signal == SIGTTOU;
    if (signal != SIGTSTP && !from_read_or_write) return;
    const Clock::time_point now = Clock::now();
    if (from_read_or_write && now - stop_passed_on_ < enough_between_stops) return;
    stop_passed_on_ = now;
    return_terminal(worker);
    ::kill(-spawning_.job_group, SIGTSTP);
}

void KeeperLoop::read_report(Worker& worker) {
    if (!worker.report) return;
    SpawnNews news = read_spawn_report(worker.report.get());
    if (!news.refused_binding.empty()) worker.refused_binding = std::move(news.refused_binding);
    // Told when the child is reaped: then nothing of it is left.
    if (news.failure) worker.failure = std::move(news.failure);
    if (!news.over) return;
    unwatch(worker.report);
    if (!worker.failure) announce(worker);
}

void KeeperLoop::announce(Worker& worker) {
    tell(Spawned{worker.round, worker.local_rank, worker.pid, worker.refused_binding});
}

void KeeperLoop::return_terminal(const Worker& worker) const {
    if (worker.terminal && ::tcgetpgrp(worker.terminal.get()) == worker.pid) {
        ::tcsetpgrp(worker.terminal.get(), spawning_.job_group);
    }
}

void KeeperLoop::give_terminal(Worker& worker) const {
    if (worker.terminal && ::tcgetpgrp(worker.terminal.get()) == spawning_.job_group) {
        if (!worker.modes) worker.modes = terminal_modes(worker.terminal.get());
        ::tcsetpgrp(worker.terminal.get(), worker.pid);
    }
}

// As a shell does after a job that was killed: the editor's or debugger's raw mode must not stay.
void KeeperLoop::restore_modes(const Worker& worker) const {
    if (worker.modes && ::tcgetpgrp(worker.terminal.get()) == worker.pid) {
        ::tcsetattr(worker.terminal.get(), TCSANOW, &*worker.modes);
    }
}

void KeeperLoop::let_go() {
    for (const auto& [pid, worker] : workers_) {
        restore_modes(worker);
        return_terminal(worker);
        ::kill(-pid, SIGKILL);
        ::kill(pid, SIGKILL);
    }
}

// --- endings ------------------------------------------------------------------------------------
std::set<pid_t> KeeperLoop::living() const {
    std::set<pid_t> pids;
    for (const auto& [pid, worker] : workers_) pids.insert(pid);
    return pids;
}

void KeeperLoop::pursue_round_ending(Clock::time_point now) {
    if (!ending_ || !clean_ups_.empty()) return;
    if (childless_) {
        tell(RoundClear{ending_->round()});
        suspended_ = frozen_ = false;  // the next round's processes are not
        ending_.reset();
    } else if (now >= ending_->next_pass()) {
        tell_stuck(ending_->pass(living(), now));
    }
}

void KeeperLoop::pursue_clean_ups(Clock::time_point now) {
    if (clean_ups_.empty()) return;
    const std::set<pid_t> workers = living();
    std::erase_if(clean_ups_, [&](CleaningUp& clean_up) {
        if (childless_) return true;
        if (now < clean_up.next_look()) return false;
        CleaningUp::Outcome outcome = clean_up.look(workers, now);
        if (outcome.left) tell(*outcome.left);
        tell_stuck(std::move(outcome.stuck));
        return outcome.done;
    });
}

// Told apart by session: to read a stuck process's environment could get us stuck behind it.
void KeeperLoop::tell_stuck(std::vector<Stuck> stuck) {
    for (Stuck& one : stuck) {
        const auto facts = read_process(one.pid);
        for (const auto& [pid, worker] : workers_) {
            if (pid == one.pid) one.command = worker.command;
            if (facts && facts->session == pid) one.local_rank = worker.local_rank;
        }
        for (const auto& [local_rank, worker] : ended_) {
            if (facts && facts->session == worker.pid) one.local_rank = local_rank;
        }
        tell(one);
    }
}

}  // namespace ddrun::launcher::keeper
