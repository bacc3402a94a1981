#pragma once

#include "rendezvous/tcpstore/store.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ddrun::rendezvous {

// PyTorch's store, served where MASTER_ADDR and MASTER_PORT say: any c10d client of 1.x to today
// finds it there. One key space a round: start_over() drops all keys and connections, so that
// nothing of an attempt that failed can be read. PyTorch's store knows no authentication: whoever
// reaches the address can use it.
//
// A client that sends what is not the protocol, or more than the limits, is closed; one that does
// not read its answers is not read any more. One thread: that of the io_context. Never blocks.
class StoreFront {
  public:
    // Listens from here on. Throws boost::system::system_error.
    StoreFront(boost::asio::io_context& io, const boost::asio::ip::tcp::endpoint& endpoint);
    ~StoreFront();
    StoreFront(const StoreFront&) = delete;
    StoreFront& operator=(const StoreFront&) = delete;

    void start_over();

    [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const;
    [[nodiscard]] std::size_t connections() const { return sessions_.size(); }

  private:
    class Session;
    using Client = tcpstore::Store::Client;

    void accept();
    void answer(Session& session, const tcpstore::Request& request, bool is_legacy);
    void flush_woken();
    void drop(Client client);

    boost::asio::io_context& io_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::unique_ptr<tcpstore::Store> store_;
    std::unordered_map<Client, std::shared_ptr<Session>> sessions_;
    std::vector<std::shared_ptr<Session>> woken_;  // to be flushed when one read is through
    std::vector<char> buffer_;
    Client last_client_ = 0;
};

}  // namespace ddrun::rendezvous
