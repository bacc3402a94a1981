#pragma once

#include <string>
#include <vector>

// All clients meet, over and over: how long one meeting takes.
namespace ddrun::bench {

struct Meeting {
    double barrier_seconds = -1;  // the middle of several; negative: not measured
    double all_gather_seconds = -1;
};

// Over raw connections served by one thread.
[[nodiscard]] Meeting meet_at_agent(const std::vector<int>& sockets, int times);
// What PyTorch's clients do: count up to N, the last sets a key, all wait for it. An all-gather is
// N keys set, and all of them read by all.
[[nodiscard]] Meeting meet_at_torch(const std::vector<int>& sockets, int times);

// This process is one of many SDK workers; rank 0 gets the times.
[[nodiscard]] Meeting meet_as_worker(int times);

}  // namespace ddrun::bench
