#pragma once

#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <string>
#include <string_view>
#include <vector>

// How a keeper whose agent died tells the rendezvous server so. Needs no agent, thread or event
// loop.
namespace ddrun::detail {

// All bytes of that connection.
[[nodiscard]] std::string obituary_message(const rendezvous::Obituary& obituary);

// Sends `message` to the first of these servers ("10.9.0.1:29400", "[fd00:9::1]:29400": literals,
// no look-up) that takes it. Blocks for `limit` at most. True: one has taken all of it and closed
// the connection. Throws nothing and raises no signal.
bool send_obituary(const std::vector<std::string>& servers, std::string_view message,
                   Duration limit = std::chrono::seconds(2)) noexcept;

}  // namespace ddrun::detail
