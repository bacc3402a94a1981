#pragma once

#include "rendezvous/protocol/time.hpp"

#include <optional>

namespace ddrun::launcher {

// Is the reader of a console worth waiting for? Decides between back-pressure (workers wait,
// nothing is lost) and dropping (workers go on, lines are counted). Pure.
class ReaderWatch {
  public:
    enum class Event {
        took,     // the reader took bytes
        refused,  // it has no room now
        failed,   // the write failed for a reason that may pass, such as a full disk
    };
    enum class Change {
        none,
        gave_up,      // from now on nobody waits for it
        moves_again,  // it takes bytes once more
    };

    explicit ReaderWatch(Duration patience) : patience_(patience) {}

    [[nodiscard]] Change step(Event event, TimePoint now);
    [[nodiscard]] Change advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    [[nodiscard]] bool given_up() const { return state_ == State::given_up; }

  private:
    enum class State {
        moving,    // takes what it gets
        refusing,  // has taken nothing since `since_`
        given_up,  // for longer than the patience
    };
    Change give_up();

    Duration patience_;
    State state_ = State::moving;
    TimePoint since_{};
};

}  // namespace ddrun::launcher
