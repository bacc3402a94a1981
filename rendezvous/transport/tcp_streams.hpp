#pragma once

#include "rendezvous/transport/stream.hpp"
#include "rendezvous/transport/tls_engine.hpp"

#include <memory>
#include <span>
#include <string_view>

// The two streams there are. Made by accept_stream and open_stream.
namespace ddrun::rendezvous {

// A connected socket. No memory of its own: reading waits for the kernel to have something first.
class PlainStream final : public Stream {
  public:
    explicit PlainStream(boost::asio::ip::tcp::socket socket);

    boost::asio::awaitable<std::size_t> read_some(std::span<char> into) override;
    boost::asio::awaitable<void> write(std::string_view bytes) override;
    void close() override;
    [[nodiscard]] boost::asio::ip::tcp::endpoint local() const override { return local_; }
    [[nodiscard]] boost::asio::ip::tcp::endpoint remote() const override { return remote_; }

  private:
    boost::asio::ip::tcp::socket socket_;
    boost::asio::ip::tcp::endpoint local_;
    boost::asio::ip::tcp::endpoint remote_;
    bool may_have_more_ = false;  // the last read was full: look before waiting
};

// The same behind an engine that has shaken hands.
class TlsStream final : public Stream {
  public:
    TlsStream(boost::asio::ip::tcp::socket socket, std::unique_ptr<TlsEngine> engine);

    boost::asio::awaitable<std::size_t> read_some(std::span<char> into) override;
    boost::asio::awaitable<void> write(std::string_view bytes) override;
    void close() override { plain_.close(); }
    [[nodiscard]] boost::asio::ip::tcp::endpoint local() const override { return plain_.local(); }
    [[nodiscard]] boost::asio::ip::tcp::endpoint remote() const override { return plain_.remote(); }

  private:
    PlainStream plain_;
    std::unique_ptr<TlsEngine> engine_;
};

}  // namespace ddrun::rendezvous
