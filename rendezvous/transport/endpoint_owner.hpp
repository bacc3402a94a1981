#pragma once

#include "rendezvous/transport/address.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <vector>

// Whether this node is the one that serves the rendezvous. Names are never compared.
namespace ddrun::rendezvous {

// Which addresses of the endpoint this node may serve, and why no other.
struct Candidates {
    Endpoints endpoints;
    std::string why_not;  // no endpoint: one line for people
};
// `endpoints` as resolve() gives them, `here` as local_addresses(). All that are of this node, if
// the lowest of all is: of the nodes under one name only one has that.
[[nodiscard]] Candidates candidates(const Endpoints& endpoints,
                                    const std::vector<LocalAddress>& here);

struct Ownership {
    // Bound and listening, to be handed to a Server; empty: somebody else serves.
    std::vector<boost::asio::ip::tcp::acceptor> listeners;
    std::string why_not;  // no listener: one line for people
};
// Binds what candidates() names and proves that connections to it arrive here and not elsewhere (a
// virtual address of a load balancer is on an interface too). A port in use means that another
// agent or server of this machine has it. Takes at most `patience`; others that connect in this
// moment are closed and try again.
[[nodiscard]] boost::asio::awaitable<Ownership> claim_endpoint(
    Endpoints endpoints, Duration patience = std::chrono::milliseconds(500));

// A server that began while the name had fewer addresses: does another node under `host`, with a
// lower address than `served`, answer now? Then that one stays and this one closes, unless its
// group is complete. False also where the name cannot be looked up.
[[nodiscard]] boost::asio::awaitable<bool> is_superseded(std::string host, int port,
                                                         boost::asio::ip::tcp::endpoint served,
                                                         TimePoint deadline);

}  // namespace ddrun::rendezvous
