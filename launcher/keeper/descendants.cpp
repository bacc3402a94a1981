#include "launcher/keeper/descendants.hpp"

#include "launcher/keeper/keeper.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>

namespace ddrun::launcher::keeper {
namespace {

constexpr int longest_ancestry = 100000;  // a chain of parents read while it changes might loop
constexpr int pass_interval_ms = 10;

int open_pidfd(pid_t pid) {
    return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

bool is_below(pid_t root, pid_t pid) {
    for (int steps = 0; pid > 0 && steps < longest_ancestry; ++steps) {
        const auto facts = read_process(pid);
        if (!facts) return false;
        if (facts->parent == root) return true;
        pid = facts->parent;
    }
    return false;
}

// The handle pins the process before its ancestry is read: if the answer belonged to a successor of
// the same number, the handle's process is dead and the signal goes nowhere.
void signal_if_below(pid_t root, pid_t pid, int signal) {
    const UniqueFd handle(open_pidfd(pid));
    if (handle && is_below(root, pid)) {
        ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
    }
}

// Reaps dead children among `pids`; returns whether any was reaped.
bool reap_children(const std::vector<pid_t>& pids) {
    bool reaped = false;
    for (const pid_t pid : pids) reaped = ::waitpid(pid, nullptr, WNOHANG | __WALL) > 0 || reaped;
    return reaped;
}

// Lists of children may miss some; the kernel's answer to a wait does not.
bool has_children() {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

void nap(int milliseconds) {
    ::poll(nullptr, 0, milliseconds);
}

// Returns early when `pid` ends; never at once, even when its death cannot be reaped (a debugger
// holds it).
void wait_for_end_of(pid_t pid, int timeout_ms) {
    const UniqueFd handle(open_pidfd(pid));
    pollfd ended{handle.get(), POLLIN, 0};
    if (::poll(&ended, 1, timeout_ms) != 0) nap(1);
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root) {
    std::vector<pid_t> found;
    std::set<pid_t> seen{root};
    std::vector<pid_t> children = children_of(root);
    for (std::size_t next = 0;; ++next) {
        for (const pid_t child : children) {
            if (seen.insert(child).second) found.push_back(child);
        }
        if (next == found.size()) return found;
        children = children_of(found[next]);
    }
}

void signal_descendants(pid_t root, const std::vector<pid_t>& pids, int signal) {
    for (const pid_t pid : pids) signal_if_below(root, pid, signal);
}

bool end_all_descendants(int patience_ms) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(patience_ms);
    for (;;) {
        const std::vector<pid_t> left = descendants_of(::getpid());
        if (left.empty() && !has_children()) return true;
        signal_descendants(::getpid(), left, SIGKILL);
        if (reap_children(left)) continue;
        if (Clock::now() >= deadline) return false;
        left.empty() ? nap(1) : wait_for_end_of(left.front(), pass_interval_ms);
    }
}

}  // namespace ddrun::launcher::keeper
