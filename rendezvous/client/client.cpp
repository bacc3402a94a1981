#include "rendezvous/client/client.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/node_codec.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;

namespace {

// Of all clients of a thread: bytes are taken out before anybody waits again.
std::span<char> read_buffer() {
    constexpr std::size_t size = std::size_t{256} << 10;
    thread_local std::vector<char> buffer(size);
    return buffer;
}

std::string words_of(const error_code& error) {
    return error == asio::error::eof ? "the server closed the connection" : error.message();
}

[[noreturn]] void throw_malformed() {
    throw system_error(boost::system::errc::make_error_code(boost::system::errc::protocol_error));
}

}  // namespace

Client::Client(asio::io_context& io, NodeLinkRules rules, ClientSettings settings, Ears ears)
    : io_(io),
      link_(std::move(rules)),
      settings_(std::move(settings)),
      ears_(std::move(ears)),
      timer_(io) {}

Client::~Client() {
    *alive_ = false;
    drop();
}

void Client::start() {
    advance();
}

void Client::submit(ToJob payload) {
    happen(Submit{std::move(payload)});
}

void Client::abort_waits(int round, std::string words) {
    happen(AbortWaits{round, std::move(words)});
}

void Client::finish(bool processes_left) {
    happen(NodeFinished{processes_left});
}

// --- events to the core -------------------------------------------------------------------------

void Client::happen(NodeLinkEvent event) {
    events_.push_back(std::move(event));
    if (!handling_) handle_all();
}

void Client::advance() {
    handling_ = true;
    perform(link_.advance_to(detail::now()));
    handle_all();
}

void Client::handle_all() {
    handling_ = true;
    while (!events_.empty()) {
        NodeLinkEvent next = std::move(events_.front());
        events_.pop_front();
        perform(link_.step(std::move(next), detail::now()));
    }
    handling_ = false;
    set_timer();
    if (link_.finished() && !std::exchange(told_finished_, true)) ears_.finished();
}

void Client::perform(NodeLink::Actions actions) {
    for (NodeLinkAction& action : actions) {
        std::visit([this](auto& one) { act(one); }, action);
    }
}

void Client::set_timer() {
    const auto next = link_.next_deadline();
    if (next == timer_set_for_) return;
    timer_set_for_ = next;
    if (!next) {
        timer_.cancel();
        return;
    }
    timer_.expires_at(*next);
    timer_.async_wait([this, alive = alive_](const error_code& error) {
        if (error || !*alive) return;
        timer_set_for_.reset();
        advance();
    });
}

// --- actions ------------------------------------------------------------------------------------

void Client::act(const OpenConnection&) {
    drop();
    connection_ = std::make_shared<Connection>();
    const auto ended = [connection = connection_](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
    };
    asio::co_spawn(io_, live(connection_),
                   asio::bind_cancellation_slot(connection_->cancel.slot(), ended));
}

void Client::act(const CloseConnection&) {
    drop();
}

// The link closes when its last words were answered or will never be.
void Client::drop() {
    if (!connection_) return;
    const ConnectionPtr connection = std::exchange(connection_, nullptr);
    connection->dropped = true;
    if (connection->stream) connection->stream->close();
    // From within the io_context, where it takes effect before this returns: the signal must live
    // until then.
    asio::post(io_, [connection] { connection->cancel.emit(asio::cancellation_type::terminal); });
}

void Client::act(const SendToServer& action) {
    if (!connection_ || !connection_->stream) return;
    connection_->outgoing += encode(action.message);
    if (std::exchange(connection_->writing, true)) return;
    asio::co_spawn(io_, write(connection_), asio::detached);
}

void Client::act(Deliver& action) {
    ears_.deliver(std::move(action.payload));
}

void Client::act(const Fence& action) {
    ears_.fence(action);
}

void Client::act(const LeaseUntil& action) {
    ears_.lease_until(action.until);
}

void Client::act(const ArmObituary& action) {
    ears_.arm_obituary(action.server_address);
}

// --- the connection -----------------------------------------------------------------------------

// A braced temporary must not stand in an expression with co_await: g++ 12 copies it bit by bit.
asio::awaitable<void> Client::live(ConnectionPtr connection) {
    std::optional<NodeLinkEvent> end;
    bool is_open = false;
    try {
        co_await open(connection);
        is_open = true;
        while (!connection->dropped) co_await read(connection);
    } catch (const NotAuthorised& refusal) {
        end = ConnectionFailed{"the rendezvous at " + settings_.host + " port " +
                                   std::to_string(settings_.port) +
                                   " does not let this node in: " + refusal.what(),
                               true, exit_code::not_authorised};
    } catch (const Foreign& foreign) {
        end = ConnectionFailed{foreign.what(), false, 0};
    } catch (const system_error& error) {
        if (is_open) {
            end = ConnectionLost{words_of(error.code())};
        } else {
            end = ConnectionFailed{words_of(error.code()), false, 0};
        }
    }
    if (connection->dropped) co_return;
    if (connection->stream) connection->stream->close();
    connection_.reset();
    happen(std::move(*end));
}

asio::awaitable<void> Client::open(ConnectionPtr connection) {
    const auto go_on = [&] {
        if (connection->dropped) throw system_error(asio::error::operation_aborted);
    };
    go_on();  // this may begin a while after it was spawned
    const Endpoints endpoints =
        co_await resolve(settings_.host, settings_.port, detail::now() + settings_.look_up_timeout);
    go_on();
    co_await ears_.resolved(endpoints);
    go_on();
    auto socket = co_await connect_to_any(endpoints, settings_.from,
                                          detail::now() + settings_.connect_timeout);
    go_on();
    connection->stream = co_await open_stream(std::move(socket), settings_.security,
                                              detail::now() + settings_.handshake_timeout);
    go_on();
    opened(*connection);
}

void Client::opened(const Connection& connection) {
    const auto local = connection.stream->local();
    const auto remote = connection.stream->remote();
    happen(ConnectionOpened{text_of(local.address()), text_of(remote), is_local(remote.address())});
}

asio::awaitable<void> Client::read(ConnectionPtr connection) {
    const std::size_t got = co_await connection->stream->read_some(read_buffer());
    if (!connection->dropped) take_frames(*connection, {read_buffer().data(), got});
}

void Client::take_frames(Connection& connection, std::string_view bytes) {
    connection.frames.append(bytes);
    while (const auto frame = connection.frames.next()) {
        auto message = decode_from_server(*frame);
        if (!message) throw_malformed();
        happen(std::move(*message));
        if (connection.dropped) return;
    }
    if (connection.frames.broken()) throw_malformed();
}

asio::awaitable<void> Client::write(ConnectionPtr connection) {
    // Behind the handler that is running now: all that it has to say goes together.
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    try {
        while (!connection->outgoing.empty() && !connection->dropped) {
            const std::string bytes = std::exchange(connection->outgoing, {});
            co_await connection->stream->write(bytes);
        }
    } catch (const system_error&) {
        // The reader hears of it too, and says so.
        connection->outgoing.clear();
    }
    connection->writing = false;
}

}  // namespace ddrun::rendezvous
