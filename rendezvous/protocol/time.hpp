#pragma once

#include <chrono>

namespace ddrun {

// A reading of the monotonic clock of one machine. Cores receive it as an argument and never read a
// clock; readings of different machines are never compared.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;

}  // namespace ddrun
