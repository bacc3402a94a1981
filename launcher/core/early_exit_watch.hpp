#pragma once

#include "rendezvous/protocol/time.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// Watches over the time between the first worker that exits 0 and the last: says so now and then,
// and ends it where the user set a limit.
class EarlyExitWatch {
  public:
    struct Rules {
        std::optional<Duration> timeout;
        Duration first_notice{};
        Duration repeat{};
    };
    explicit EarlyExitWatch(Rules rules);

    void finished(int rank, TimePoint now);
    void shift(Duration by);  // the job was suspended for so long

    [[nodiscard]] std::optional<TimePoint> deadline() const;
    // "rank 2 finished (exit 0) 60 s ago, 3 still running" when it is time to say so again.
    [[nodiscard]] std::optional<std::string> notice(std::size_t running, TimePoint now);
    [[nodiscard]] bool expired(TimePoint now) const;
    [[nodiscard]] std::string words(std::size_t running, TimePoint now) const;

  private:
    Rules rules_;
    std::vector<int> ranks_;
    TimePoint first_at_{};
    TimePoint next_notice_{};
};

}  // namespace ddrun::launcher
