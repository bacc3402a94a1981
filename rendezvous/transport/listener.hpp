#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace ddrun::rendezvous {

// Listens on exactly this address, where [::] is every address of both kinds; port 0: any free one.
// Throws boost::system::system_error.
[[nodiscard]] boost::asio::ip::tcp::acceptor open_listener(
    const boost::asio::any_io_executor& executor, const boost::asio::ip::tcp::endpoint& endpoint,
    int backlog);

}  // namespace ddrun::rendezvous
