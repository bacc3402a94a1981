#pragma once

#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Messages to bytes and back. A frame is: u32 little-endian length of what follows, u8 type, body.
namespace ddrun::rendezvous {

// A whole frame, ready to send.
[[nodiscard]] std::string encode(const FromWorker& message);
[[nodiscard]] std::string encode(const ToWorker& message);
// The same, behind what `bytes` holds already.
void append(std::string& bytes, const FromWorker& message);
void append(std::string& bytes, const ToWorker& message);

// The body of one frame (type byte first, no length). nullopt: malformed, close the connection.
[[nodiscard]] std::optional<FromWorker> decode_from_worker(std::string_view frame);
[[nodiscard]] std::optional<ToWorker> decode_to_worker(std::string_view frame);

}  // namespace ddrun::rendezvous
