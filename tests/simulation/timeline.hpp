#pragma once

#include "rendezvous/protocol/time.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace ddrun::simulation {

// What will happen when. Things of one instant happen in the order in which they were planned, so a
// seed always gives the same story.
class Timeline {
  public:
    [[nodiscard]] TimePoint now() const { return now_; }
    [[nodiscard]] bool empty() const { return planned_.empty(); }

    void at(TimePoint when, std::function<void()> what) {
        planned_.emplace(std::pair(when < now_ ? now_ : when, ++count_), std::move(what));
    }
    void in(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

    void next() {
        auto first = planned_.extract(planned_.begin());
        now_ = first.key().first;
        first.mapped()();
    }

  private:
    std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> planned_;
    TimePoint now_{std::chrono::hours(1)};
    std::uint64_t count_ = 0;
};

// Messages that take a while and never overtake each other.
class Channel {
  public:
    explicit Channel(Timeline& timeline) : timeline_(timeline) {}

    void send(Duration delay, std::function<void()> arrive) {
        last_ = std::max(last_, timeline_.now() + delay);
        timeline_.at(last_, std::move(arrive));
    }

  private:
    Timeline& timeline_;
    TimePoint last_{};
};

}  // namespace ddrun::simulation
