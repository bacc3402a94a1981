#pragma once

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/transport/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ddrun::test {

// A rendezvous server that does what a test wants: one peer at a time, on a free port or a given
// one of 127.0.0.1.
class FakeServer {
  public:
    using Answers = std::vector<rendezvous::FromServer>;

    FakeServer(boost::asio::io_context& io, rendezvous::Security security,
               std::function<Answers(const rendezvous::FromNode&)> answer, unsigned short port = 0)
        : io_(io),
          security_(security),
          answer_(std::move(answer)),
          acceptor_(io, {boost::asio::ip::address_v4::loopback(), port}) {
        boost::asio::co_spawn(io_, serve(), boost::asio::detached);
    }

    [[nodiscard]] unsigned short port() const { return acceptor_.local_endpoint().port(); }
    // Drops the peer; takes the next.
    void hang_up() {
        if (peer_) peer_->close();
    }
    void close() {
        acceptor_.close();
        hang_up();
    }

    std::vector<rendezvous::FromNode> heard;  // of all connections
    int connections = 0;
    int reads = 0;
    std::string raw_answer;  // sent once instead of the first answer

  private:
    boost::asio::awaitable<void> serve() {
        try {
            while (true) {
                auto socket = co_await acceptor_.async_accept(boost::asio::use_awaitable);
                ++connections;
                try {
                    co_await talk(std::move(socket));
                } catch (const boost::system::system_error&) {
                } catch (const rendezvous::NotAuthorised&) {
                } catch (const rendezvous::Foreign&) {
                }
            }
        } catch (const boost::system::system_error&) {
            // closed
        }
    }
    boost::asio::awaitable<void> talk(boost::asio::ip::tcp::socket socket) {
        const TimePoint deadline = detail::now() + std::chrono::seconds(10);
        auto accepted = co_await rendezvous::accept_stream(std::move(socket), security_, deadline);
        peer_ = std::move(accepted.stream);
        const std::shared_ptr<rendezvous::Stream> peer = peer_;
        rendezvous::FrameReader frames(rendezvous::max_node_frame_bytes);
        std::vector<char> buffer(1u << 20);
        while (true) {
            const std::size_t size = co_await peer->read_some(buffer);
            ++reads;
            frames.append({buffer.data(), size});
            std::string out = std::exchange(raw_answer, {});
            while (const auto frame = frames.next()) {
                auto message = rendezvous::decode_from_node(*frame);
                if (!message) break;
                for (const auto& answer : answer_(*message)) out += rendezvous::encode(answer);
                heard.push_back(std::move(*message));
            }
            if (!out.empty()) co_await peer->write(out);
        }
    }

    boost::asio::io_context& io_;
    rendezvous::Security security_;
    std::function<Answers(const rendezvous::FromNode&)> answer_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::shared_ptr<rendezvous::Stream> peer_;
};

}  // namespace ddrun::test
