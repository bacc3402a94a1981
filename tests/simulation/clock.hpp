#pragma once

#include "rendezvous/protocol/time.hpp"

#include <cstdint>

namespace ddrun::simulation {

// The monotonic clock of one machine: it starts anywhere and runs a little too fast or too slow.
// Nobody compares the clocks of two machines.
class Clock {
  public:
    Clock() = default;
    Clock(Duration offset, int parts_per_million) : offset_(offset), ppm_(parts_per_million) {}

    // What it shows at `truth`.
    [[nodiscard]] TimePoint shows(TimePoint truth) const {
        return truth + offset_ + drift(truth.time_since_epoch());
    }
    // The first time at which it shows `shown` or more.
    [[nodiscard]] TimePoint when_it_shows(TimePoint shown) const {
        if (shown >= TimePoint::max() - std::chrono::hours(1)) return TimePoint::max();
        TimePoint truth = shown - offset_;
        truth -= drift(truth.time_since_epoch());
        while (shows(truth) < shown) truth += std::chrono::nanoseconds(200);
        return truth;
    }

  private:
    [[nodiscard]] Duration drift(Duration passed) const { return passed / 1'000'000 * ppm_; }

    Duration offset_{};
    int ppm_ = 0;
};

}  // namespace ddrun::simulation
