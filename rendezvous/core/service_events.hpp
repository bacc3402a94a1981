#pragma once

#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <string>
#include <variant>

// What a server's shell tells the JobService of one job, and what that asks of the shell.
namespace ddrun::rendezvous {

using ConnectionId = std::uint64_t;  // given by the shell, never used again

struct PeerSaid {  // an authenticated peer; the first message of a connection is its NodeHello
    ConnectionId connection = 0;
    FromNode message;
};
struct PeerGone {  // closed, reset or malformed
    ConnectionId connection = 0;
};
// The shell could not serve for so long (stopped, overloaded) or has that many handshakes waiting:
// silence of that time proves nothing about a node.
struct ServerWasSlow {
    Duration time{};
};
using ServiceEvent = std::variant<PeerSaid, PeerGone, ServerWasSlow>;

struct SendToPeer {
    ConnectionId connection = 0;
    FromServer message;
};
struct ClosePeer {  // after what was sent before is on its way
    ConnectionId connection = 0;
};
using ServiceAction = std::variant<SendToPeer, ClosePeer>;

}  // namespace ddrun::rendezvous
