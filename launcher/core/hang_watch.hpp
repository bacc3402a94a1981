#pragma once

#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// Finds out that nothing moves any more, and who stood still first.
//
// A worker that reports progress is judged by its own clock: new steps once it has reported one,
// heartbeats before that, and its output. All other workers share one clock, since often only rank
// 0 writes. Workers are named by local rank. Without a time-out nothing ever hangs.
class HangWatch {
  public:
    HangWatch(std::optional<Duration> timeout, int workers);

    void started(int worker, TimePoint now);
    void ended(int worker);
    void wrote(int worker, TimePoint now);
    // `step` < 0: a heartbeat. True when the step is a new one.
    bool progressed(int worker, std::int64_t step, TimePoint now);
    // By a job-control signal. While all are stopped somebody wants them so, and no clock runs.
    void stopped(int worker, bool stopped, TimePoint now);
    // The time since the last call is nobody's fault: all clocks start again.
    void restart(TimePoint now);

    // When somebody will have been silent for too long; nullopt: no clock runs.
    [[nodiscard]] std::optional<TimePoint> deadline() const;
    // Those that stood still first; empty while nothing hangs.
    [[nodiscard]] std::vector<int> suspects(TimePoint now) const;
    [[nodiscard]] bool is_stopped(int worker) const;
    [[nodiscard]] std::int64_t last_step(int worker) const;  // -1: none

  private:
    struct Clock {
        bool watched = false;
        bool reports = false;
        bool stopped = false;
        std::int64_t step = -1;
        TimePoint moved_at{};  // progress or output
        TimePoint alive_at{};  // also heartbeats of a worker that reports steps
    };

    [[nodiscard]] bool all_stopped() const;
    [[nodiscard]] std::optional<TimePoint> shared_clock() const;
    [[nodiscard]] std::vector<int> silent_reporters(TimePoint now) const;
    [[nodiscard]] std::vector<int> silent_others(TimePoint now) const;

    std::optional<Duration> timeout_;
    std::vector<Clock> clocks_;
};

}  // namespace ddrun::launcher
