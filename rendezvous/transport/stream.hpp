#pragma once

#include "rendezvous/protocol/time.hpp"
#include "rendezvous/transport/security.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// A connection of the rendezvous: TCP, plain or TLS 1.3 with a pre-shared key.
namespace ddrun::rendezvous {

// One reader and one writer at a time; not thread-safe. Errors are thrown as
// boost::system::system_error. A stream that is closed ends both with operation_aborted; it must
// not be destroyed before they have ended.
class Stream {
  public:
    virtual ~Stream() = default;
    // At least 1 byte; end of stream is boost::asio::error::eof. `into` is written right before the
    // caller goes on, with nothing else of its io_context in between: all connections of a thread
    // may read into one buffer, if each uses what it got before it waits again.
    virtual boost::asio::awaitable<std::size_t> read_some(std::span<char> into) = 0;
    // All of `bytes`, which must outlive the wait.
    virtual boost::asio::awaitable<void> write(std::string_view bytes) = 0;
    // At once, unread and unsent bytes are lost. May be called again.
    virtual void close() = 0;

    // Of the connection as it was made; valid after close() too.
    [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
    [[nodiscard]] virtual boost::asio::ip::tcp::endpoint remote() const = 0;
};

// What a connection turned out to be. The preface was read: a stream's first bytes are the frame
// with the NodeHello.
struct Accepted {
    std::unique_ptr<Stream> stream;
    // Instead of a stream, let through in plain in every mode: the body of a frame that should be
    // an Obituary, as decode_from_node takes it. The connection is closed.
    std::string obituary;
};

// Server side: authenticates the peer of an accepted socket. Until then the peer makes us hold at
// most max_unknown_bytes, and one that does not know the key gets no more than an alert. Throws
// NotAuthorised, Foreign (closed at the first wrong byte), or boost::system::system_error, with
// timed_out at `deadline`; the socket is closed then. `security` must outlive the wait.
[[nodiscard]] boost::asio::awaitable<Accepted> accept_stream(boost::asio::ip::tcp::socket socket,
                                                             const Security& security,
                                                             TimePoint deadline);
constexpr std::size_t max_unknown_bytes = 4096;

// Client side: authenticates to the server behind a connected socket and sends the preface. Throws
// as accept_stream. `security` is copied.
[[nodiscard]] boost::asio::awaitable<std::unique_ptr<Stream>> open_stream(
    boost::asio::ip::tcp::socket socket, Security security, TimePoint deadline);

}  // namespace ddrun::rendezvous
