#pragma once

#include <string>

namespace ddrun::launcher {

// Name (in the abstract unix space, without the leading zero) by which a ddrun marks its
// MASTER_PORT.
[[nodiscard]] std::string master_port_claim(int port);

// Who has the TCP port: "pid 4711 (python3 -m http.server 29500)"; empty when /proc does not tell,
// for example for another user's process.
[[nodiscard]] std::string describe_port_holder(int port);

}  // namespace ddrun::launcher
