#pragma once

#include "tests/bench/store_clients.hpp"

#include <string>

namespace ddrun::bench {

// The same load through stores of the SDK, each with its own connection, control thread and thread
// that calls it.
[[nodiscard]] Outcome drive_sdk(const std::string& address, int round, int clients,
                                const Load& load, int server_pid);

}  // namespace ddrun::bench
