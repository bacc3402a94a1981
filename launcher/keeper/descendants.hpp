#pragma once

#include "launcher/keeper/proc.hpp"

#include <sys/types.h>

#include <vector>

namespace ddrun::launcher::keeper {

// Every process below `root`, parents before children; zombies too. Found by parentage, so a
// process whose parent died is among them only when `root` is its subreaper.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t root);

// Sends `signal` to each of `pids` that still is below `root` at that moment: a number that the
// kernel gave to a stranger in the meantime is left alone.
void signal_descendants(pid_t root, const std::vector<pid_t>& pids, int signal);

}  // namespace ddrun::launcher::keeper
