#pragma once

#include "launcher/keeper/messages.hpp"

#include <sys/types.h>

#include <chrono>
#include <map>
#include <set>
#include <vector>

namespace ddrun::launcher::keeper {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Watches processes that got SIGKILL and names, once each, those that do not end.
class StuckWatch {
  public:
    explicit StuckWatch(Milliseconds patience) : patience_(patience) {}

    // `present`: all that were signalled and are still there. Returns those that have just become
    // stuck.
    [[nodiscard]] std::vector<Stuck> update(const std::vector<pid_t>& present,
                                            Clock::time_point now);
    // Something new appeared in the last update.
    [[nodiscard]] bool grew() const { return grew_; }

  private:
    struct Seen {
        Clock::time_point since;
        bool named = false;
    };
    Milliseconds patience_;
    std::map<pid_t, Seen> seen_;
    bool grew_ = false;
};

// Ends every descendant of the keeper, in passes: what forks while a pass runs is met by the next
// one. The caller reaps between passes and knows when nothing is left.
class RoundEnding {
  public:
    RoundEnding(const KillRound& order, Milliseconds patience, Clock::time_point now);

    [[nodiscard]] int round() const { return order_.round; }
    [[nodiscard]] Clock::time_point next_pass() const { return next_pass_; }
    // Kills; returns who outlived SIGKILL for too long. `workers`: those still alive.
    [[nodiscard]] std::vector<Stuck> pass(const std::set<pid_t>& workers, Clock::time_point now);
    // No worker lives (any more): helpers' grace starts.
    void workers_gone(Clock::time_point now);

  private:
    KillRound order_;
    bool sparing_helpers_;  // only workers are killed yet
    StuckWatch stuck_;
    Milliseconds interval_;
    Clock::time_point next_pass_;
};

}  // namespace ddrun::launcher::keeper
