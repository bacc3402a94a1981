#pragma once

#include "rendezvous/protocol/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

// A connection of the rendezvous: TCP, plain or TLS 1.3 with a pre-shared key.
namespace ddrun::rendezvous {

// How peers prove that they belong to the job.
struct Security {
    enum class Mode { plain, psk, munge };
    Mode mode = Mode::psk;
    std::array<unsigned char, 32> key{};  // psk: from the job's secret by HKDF (secret.hpp)
};

// One reader and one writer at a time; not thread-safe. Errors are thrown as
// boost::system::system_error. A stream that is closed ends both with operation_aborted.
class Stream {
  public:
    virtual ~Stream() = default;
    // At least 1 byte; end of stream is boost::asio::error::eof.
    virtual boost::asio::awaitable<std::size_t> read_some(std::span<char> into) = 0;
    // All of `bytes`, which must outlive the wait.
    virtual boost::asio::awaitable<void> write(std::string_view bytes) = 0;
    virtual void close() = 0;

    [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
    [[nodiscard]] virtual boost::asio::ip::tcp::endpoint remote() const = 0;
};

// Server side: authenticates the peer of an accepted socket. Ends by `deadline` at the latest; a
// peer that does not know the key gets no more than an alert. An obituary (PROTOCOL.md) is let
// through in plain in every mode: then `obituary` holds its frame and `stream` is null.
struct Accepted {
    std::unique_ptr<Stream> stream;
    std::string obituary;
};
[[nodiscard]] boost::asio::awaitable<Accepted> accept_stream(boost::asio::ip::tcp::socket socket,
                                                             const Security& security,
                                                             TimePoint deadline);

// Client side: authenticates to the server behind a connected socket.
[[nodiscard]] boost::asio::awaitable<std::unique_ptr<Stream>> open_stream(
    boost::asio::ip::tcp::socket socket, const Security& security, TimePoint deadline);

// The peer has another key, or none where we have one: trying again cannot help.
struct NotAuthorised : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace ddrun::rendezvous
