#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace ddrun {

namespace detail {
class WorkState;
}

// A collective that was begun and is not waited for yet. Its buffers must live, and may not be
// touched, until it is done. Copies speak of the same one. Dropped, the collective runs all the
// same; an error then shows in the group's next call.
//
// Threads: any.
class [[nodiscard]] Work {
  public:
    // Of the group's calls, from 1; the same on every rank.
    [[nodiscard]] std::uint64_t sequence() const noexcept;
    // Finished, well or not. Never blocks.
    [[nodiscard]] bool is_done() const noexcept;
    // Returns when it is finished, which it is by its own timeout at the latest; throws what the
    // call that waits would have thrown, as often as it is asked.
    void wait() const;
    // The same, but returns false where it is not finished by then.
    [[nodiscard]] bool wait_for(std::chrono::milliseconds longest) const;

    explicit Work(std::shared_ptr<detail::WorkState> state);  // made by ProcessGroup

  private:
    std::shared_ptr<detail::WorkState> state_;
};

}  // namespace ddrun
