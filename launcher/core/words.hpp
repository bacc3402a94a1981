#pragma once

#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

// How the launcher writes ranks, durations and sizes in sentences for people.
namespace ddrun::launcher {

// "rank 3", "ranks 0-2, 5": sorted, repeated ranks once. "no rank" when empty.
[[nodiscard]] std::string rank_list(std::vector<int> ranks);
// "0-2, 5" of the same.
[[nodiscard]] std::string number_ranges(std::vector<int> numbers);

// "12 ms", "0.2 s", "30 s", "12 min", "2.5 h": as few digits as a reader wants.
[[nodiscard]] std::string duration_text(Duration duration);

// "64 MiB", "1.5 GiB".
[[nodiscard]] std::string size_text(std::int64_t bytes);

// "1 worker", "3 workers".
[[nodiscard]] std::string counted(std::size_t count, const std::string& noun);

}  // namespace ddrun::launcher
