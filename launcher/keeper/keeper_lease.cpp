// A node that may have been replaced must not run workers, whatever became of its agent.
#include "launcher/keeper/descendants.hpp"
#include "launcher/keeper/keeper_loop.hpp"

#include <algorithm>
#include <csignal>

namespace ddrun::launcher::keeper {
namespace {

constexpr int suspend_passes = 5;

Clock::time_point time_of(std::int64_t nanoseconds) {
    return Clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

}  // namespace

// What forks during a pass is met by the next one.
void KeeperLoop::signal_trees(int signal) const {
    std::set<pid_t> reached;
    for (int pass = 0; pass < suspend_passes; ++pass) {
        std::vector<pid_t> fresh = descendants_of(spawning_.keeper);
        std::erase_if(fresh, [&](pid_t pid) { return !reached.insert(pid).second; });
        if (fresh.empty()) break;
        signal_descendants(spawning_.keeper, fresh, signal);
    }
}

void KeeperLoop::obey(const Lease& order) {
    lease_ = order;
    if (frozen_ && !lease_ended(Clock::now())) {
        frozen_ = false;
        signal_trees(SIGCONT);
    }
}

bool KeeperLoop::lease_ended(Clock::time_point now) const {
    return lease_.until_ns != 0 && time_of(lease_.until_ns) <= now;
}

void KeeperLoop::obey(const LastWords& order) {
    last_words_ = order;
}

Clock::time_point KeeperLoop::next_lease_step() const {
    if (lease_.until_ns == 0 || workers_.empty() || ending_) return Clock::time_point::max();
    if (!frozen_ && !suspended_) return time_of(lease_.until_ns);
    return time_of(lease_.until_ns + lease_.grace_ns);
}

void KeeperLoop::pursue_lease(Clock::time_point now) {
    if (next_lease_step() > now) return;
    if (now >= time_of(lease_.until_ns + lease_.grace_ns)) {
        return obey(KillRound{workers_.begin()->second.round, 0});
    }
    frozen_ = true;
    signal_trees(SIGSTOP);
}

}  // namespace ddrun::launcher::keeper
