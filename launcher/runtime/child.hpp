#pragma once

#include <chrono>
#include <optional>

namespace ddrun::launcher {

// Reaps one child of ours: waits at most `patience`, then kills it. The raw wait status; nullopt
// when it is not a child (any more).
std::optional<int> reap_child(int pid, std::chrono::milliseconds patience);

}  // namespace ddrun::launcher
