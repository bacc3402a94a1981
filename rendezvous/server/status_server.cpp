#include "rendezvous/server/status_server.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/server/http_reader.hpp"
#include "rendezvous/server/status_text.hpp"
#include "rendezvous/transport/deadline.hpp"
#include "rendezvous/transport/listener.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <optional>
#include <utility>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int most_connections = 32;
constexpr auto question_timeout = std::chrono::seconds(5);
constexpr auto after_failure = std::chrono::milliseconds(100);
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

asio::awaitable<StatusQuestion> read_question(tcp::socket& socket) {
    HttpReader reader;
    std::array<char, 2048> buffer;
    for (;;) {
        const std::size_t got =
            co_await socket.async_read_some(asio::buffer(buffer), asio::use_awaitable);
        if (const auto question = reader.read({buffer.data(), got})) co_return *question;
    }
}

// So that closing does not cost the peer our answer.
asio::awaitable<void> read_the_rest(tcp::socket& socket) {
    std::array<char, 2048> buffer;
    while (co_await socket.async_read_some(asio::buffer(buffer), asio::use_awaitable) > 0) {
    }
}

}  // namespace

StatusServer::StatusServer(asio::io_context& io, const tcp::endpoint& endpoint,
                           std::function<ServerStatus()> status)
    : state_(std::make_shared<State>(
          State{open_listener(io.get_executor(), endpoint, most_connections), std::move(status)})) {
    asio::co_spawn(io, accept(state_), asio::detached);
}

StatusServer::~StatusServer() {
    state_->status = nullptr;
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
}

tcp::endpoint StatusServer::endpoint() const {
    return state_->acceptor.local_endpoint();
}

asio::awaitable<void> StatusServer::accept(std::shared_ptr<State> state) {
    const auto executor = state->acceptor.get_executor();
    while (state->acceptor.is_open()) {
        auto [error, socket] = co_await state->acceptor.async_accept(quietly);
        if (error == asio::error::operation_aborted) co_return;
        if (error) {
            asio::steady_timer pause(executor, after_failure);
            (void)co_await pause.async_wait(quietly);
        } else if (state->connections < most_connections) {  // else it is closed
            ++state->connections;
            asio::co_spawn(executor, answer(state, std::move(socket)), asio::detached);
        }
    }
}

asio::awaitable<void> StatusServer::answer(std::shared_ptr<State> state, tcp::socket socket) {
    try {
        const Deadline limit(socket, detail::now() + question_timeout);
        const StatusQuestion question = co_await read_question(socket);
        if (state->status) {
            const std::string text = http_answer(question, state->status());
            co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
            socket.shutdown(tcp::socket::shutdown_send);
        }
        co_await read_the_rest(socket);
    } catch (const std::exception&) {
        // The peer is done, gone or slow.
    }
    --state->connections;
}

}  // namespace ddrun::rendezvous
