#pragma once

#include "rendezvous/server/http_reader.hpp"
#include "rendezvous/server/server_status.hpp"

#include <string>

// What the status page says, as text. Values in, values out.
namespace ddrun::rendezvous {

[[nodiscard]] std::string status_json(const ServerStatus& status);
// Prometheus text format 0.0.4.
[[nodiscard]] std::string status_metrics(const ServerStatus& status);

// A whole HTTP answer; the connection is closed after it.
[[nodiscard]] std::string http_answer(const StatusQuestion& question, const ServerStatus& status);

}  // namespace ddrun::rendezvous
