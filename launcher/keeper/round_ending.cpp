#include "launcher/keeper/round_ending.hpp"

#include "launcher/keeper/descendants.hpp"
#include "launcher/keeper/proc.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace ddrun::launcher::keeper {
namespace {

// A pass costs some hundred microseconds of reading /proc; killed processes need about as long to
// end.
constexpr Milliseconds shortest_interval{2};
constexpr Milliseconds longest_interval{100};

// Why a killed process is still there: another user's, since it became one by a set-uid program; a
// debugger that holds its death back; or where it sleeps.
std::string what_holds(pid_t pid) {
    if (::kill(pid, 0) != 0 && errno == EPERM) return "another user's process (kill: EPERM)";
    const std::string status = read_proc_file(pid, "status", 4096);
    const std::string key = "TracerPid:\t";
    const std::size_t at = status.find(key);
    if (at != std::string::npos && status[at + key.size()] != '0') {
        const std::size_t from = at + key.size();
        const std::string tracer = status.substr(from, status.find('\n', from) - from);
        return "traced by pid " + tracer;
    }
    const std::string channel = wait_channel_of(pid);
    return channel.empty() ? channel : "waiting in " + channel;
}

}  // namespace

std::vector<Stuck> StuckWatch::update(const std::vector<pid_t>& present, Clock::time_point now) {
    std::map<pid_t, Seen> still;
    std::vector<Stuck> stuck;
    grew_ = false;
    for (const pid_t pid : present) {
        const auto known = seen_.find(pid);
        Seen seen = known != seen_.end() ? known->second : Seen{now, false};
        grew_ = grew_ || known == seen_.end();
        if (!seen.named && now - seen.since >= patience_) {
            seen.named = true;
            stuck.push_back({0, pid, -1, command_of(pid), what_holds(pid)});
        }
        still.emplace(pid, seen);
    }
    seen_ = std::move(still);
    return stuck;
}

RoundEnding::RoundEnding(const KillRound& order, Milliseconds patience, Clock::time_point now)
    : order_(order),
      sparing_helpers_(order.helper_grace_ms > 0),
      stuck_(patience),
      interval_(shortest_interval),
      next_pass_(now) {}

std::vector<Stuck> RoundEnding::pass(const std::set<pid_t>& workers, Clock::time_point now) {
    if (workers.empty()) sparing_helpers_ = false;
    // Workers are our children, so their numbers are theirs until we reap them.
    for (const pid_t pid : workers) ::kill(pid, SIGKILL);
    std::vector<pid_t> killed(workers.begin(), workers.end());
    if (!sparing_helpers_) {
        killed = descendants_of(::getpid());
        std::vector<pid_t> others = killed;
        std::erase_if(others, [&](pid_t pid) { return workers.contains(pid); });
        signal_descendants(::getpid(), others, SIGKILL);
    }
    std::vector<Stuck> stuck = stuck_.update(killed, now);
    for (Stuck& one : stuck) one.round = order_.round;
    interval_ = stuck_.grew() ? shortest_interval : std::min(interval_ * 2, longest_interval);
    next_pass_ = now + interval_;
    return stuck;
}

void RoundEnding::workers_gone(Clock::time_point now) {
    if (sparing_helpers_) next_pass_ = now + Milliseconds(order_.helper_grace_ms);
}

}  // namespace ddrun::launcher::keeper
