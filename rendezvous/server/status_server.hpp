#pragma once

#include "rendezvous/server/server_status.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>

namespace ddrun::rendezvous {

// The status page: HTTP on its own port, read-only, a few connections at a time, one question each.
// Belongs to the thread of its io_context; never blocks.
class StatusServer {
  public:
    // Listens at once; throws boost::system::system_error. `status` is asked once a question.
    StatusServer(boost::asio::io_context& io, const boost::asio::ip::tcp::endpoint& endpoint,
                 std::function<ServerStatus()> status);
    ~StatusServer();
    StatusServer(const StatusServer&) = delete;
    StatusServer& operator=(const StatusServer&) = delete;

    [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const;

  private:
    // Outlives the server as long as a connection needs it.
    struct State {
        boost::asio::ip::tcp::acceptor acceptor;
        std::function<ServerStatus()> status;
        int connections = 0;
    };
    static boost::asio::awaitable<void> accept(std::shared_ptr<State> state);
    static boost::asio::awaitable<void> answer(std::shared_ptr<State> state,
                                               boost::asio::ip::tcp::socket socket);

    std::shared_ptr<State> state_;
};

}  // namespace ddrun::rendezvous
