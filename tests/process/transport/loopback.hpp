#pragma once

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/transport/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ddrun::test {

// A listener on a free port of 127.0.0.1, with both ends of one connection to it.
class Loopback {
  public:
    Loopback();

    // Runs both handshakes to their ends: both streams, or words.
    void connect(const rendezvous::Security& of_client, const rendezvous::Security& of_server);
    // Accepts one connection while run() runs.
    void accept(const rendezvous::Security& security);
    [[nodiscard]] boost::asio::awaitable<boost::asio::ip::tcp::socket> connected_socket();

    // What it throws is added to failures().
    void spawn(boost::asio::awaitable<void> task);
    void post(std::function<void()> action) { boost::asio::post(io, std::move(action)); }
    void run();  // until nothing is left to do
    [[nodiscard]] std::string failures() const { return failures_; }
    [[nodiscard]] TimePoint soon() const { return detail::now() + patience; }

    std::chrono::milliseconds patience = std::chrono::seconds(20);
    boost::asio::io_context io;
    boost::asio::ip::tcp::acceptor acceptor;
    std::unique_ptr<rendezvous::Stream> client;
    std::unique_ptr<rendezvous::Stream> server;
    std::string obituary;
    std::string client_refusal;  // words of NotAuthorised
    std::string server_refusal;
    double seconds = 0;  // of the last run()

  private:
    boost::asio::awaitable<void> accept_one(rendezvous::Security security);
    boost::asio::awaitable<void> open_one(rendezvous::Security security);

    std::string failures_;
};

[[nodiscard]] boost::asio::awaitable<void> write_all(rendezvous::Stream& stream,
                                                     std::string_view bytes);
[[nodiscard]] boost::asio::awaitable<void> read_exactly(rendezvous::Stream& stream,
                                                        std::size_t size, std::string& into);
[[nodiscard]] boost::asio::awaitable<void> read_to_end(rendezvous::Stream& stream,
                                                       std::string& into);
// A peer that is not ours: says these bytes and listens until it is closed.
[[nodiscard]] boost::asio::awaitable<void> say_raw(Loopback& loopback, std::string bytes,
                                                   std::string& answer);

// Bytes of this process's heap in use.
[[nodiscard]] std::size_t allocated_bytes();

}  // namespace ddrun::test
