#pragma once

#include "rendezvous/protocol/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// Addresses of this node and of the endpoint. Host names are never compared.
namespace ddrun::rendezvous {

struct LocalAddress {
    std::string interface;
    boost::asio::ip::address address;
};
// Of interfaces that are up and not dummies (kube-ipvs0 has addresses that belong to others).
[[nodiscard]] std::vector<LocalAddress> local_addresses();
[[nodiscard]] bool is_local(const boost::asio::ip::address& address);

// This node has no such address or interface: a usage error that lists those it has.
struct NoSuchAddress : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// What --local-addr (a literal or a name) or --interface chooses; nothing where neither is given.
// May look a name up, blocking. Throws NoSuchAddress.
[[nodiscard]] std::optional<boost::asio::ip::address> choose_local_address(
    const std::optional<std::string>& local_addr, const std::optional<std::string>& interface);

// "10.9.0.1", "fd00:9::1": as a URL-free text; an IPv4-mapped address as IPv4.
[[nodiscard]] std::string text_of(const boost::asio::ip::address& address);
// "10.9.0.1:29400", "[fd00:9::1]:29400"
[[nodiscard]] std::string text_of(const boost::asio::ip::tcp::endpoint& endpoint);

using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

// Every address of `host`, lowest first; a literal needs no look-up at all. Each call looks afresh.
// A look-up that does not answer by `deadline` is left behind, so nobody ever waits for it. Throws
// boost::system::system_error.
[[nodiscard]] boost::asio::awaitable<Endpoints> resolve(std::string host, int port,
                                                        TimePoint deadline);

// A socket to the first that answers; a further address is tried every 250 ms. `from`: the address
// to connect from. Throws system_error: the last failure, or timed_out.
[[nodiscard]] boost::asio::awaitable<boost::asio::ip::tcp::socket> connect_to_any(
    Endpoints endpoints, std::optional<boost::asio::ip::address> from, TimePoint deadline);

}  // namespace ddrun::rendezvous
