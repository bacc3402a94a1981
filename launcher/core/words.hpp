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

// One line of a worker's output as plain text: what a terminal would still show after its carriage
// returns, without colours and other control sequences.
[[nodiscard]] std::string plain_text(const std::string& line);

// `text` cut at its line ends.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

// "1 worker", "3 workers".
[[nodiscard]] std::string counted(std::size_t count, const std::string& noun);

}  // namespace ddrun::launcher
