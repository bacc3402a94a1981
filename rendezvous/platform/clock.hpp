#pragma once

#include "rendezvous/protocol/time.hpp"

namespace ddrun::detail {

// The monotonic clock of this machine (CLOCK_MONOTONIC). Shells read it once per event and pass it
// on.
[[nodiscard]] inline TimePoint now() {
    return std::chrono::steady_clock::now();
}

}  // namespace ddrun::detail
