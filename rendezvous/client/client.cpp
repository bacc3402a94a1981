#include "rendezvous/client/client.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/node_codec.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>

#include <span>
#include <utility>
#include <variant>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;

namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 10;

std::string words_of(const error_code& error) {
    return error == asio::error::eof ? "the server closed the connection" : error.message();
}

}  // namespace

Client::Client(asio::io_context& io, NodeLinkRules rules, ClientSettings settings, Ears ears)
    : io_(io),
      link_(std::move(rules)),
      settings_(std::move(settings)),
      ears_(std::move(ears)),
      timer_(io),
      buffer_(read_bytes) {}

Client::~Client() {
    *alive_ = false;
    drop();
}

void Client::start() {
    perform(link_.advance_to(detail::now()));
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
    if (std::exchange(handling_, true)) return;
    while (!events_.empty()) {
        NodeLinkEvent next = std::move(events_.front());
        events_.pop_front();
        perform(link_.step(std::move(next), detail::now()));
    }
    handling_ = false;
    set_timer();
}

void Client::perform(NodeLink::Actions actions) {
    for (NodeLinkAction& action : actions) {
        std::visit([this](auto& one) { act(one); }, action);
    }
    if (link_.finished() && !std::exchange(told_finished_, true)) ears_.finished();
    if (!handling_) set_timer();
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
        perform(link_.advance_to(detail::now()));
    });
}

// --- actions ------------------------------------------------------------------------------------

void Client::act(const OpenConnection&) {
    drop();
    connection_ = std::make_shared<Connection>();
    asio::co_spawn(io_, live(connection_), asio::detached);
}

void Client::act(const CloseConnection&) {
    drop();
}

void Client::drop() {
    if (!connection_) return;
    connection_->dropped = true;
    // What was said last (a goodbye) still goes out: the writer closes when it is done.
    if (connection_->stream && !connection_->writing) connection_->stream->close();
    connection_.reset();
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

asio::awaitable<void> Client::live(ConnectionPtr connection) {
    std::optional<NodeLinkEvent> end;
    const auto alive = alive_;
    bool is_open = false;
    try {
        is_open = co_await open(connection);
        if (is_open) co_await read(connection);
    } catch (const NotAuthorised& refusal) {
        end = ConnectionFailed{refusal.what(), true, exit_code::not_authorised};
    } catch (const Foreign& foreign) {
        end = ConnectionFailed{foreign.what(), false, 0};
    } catch (const system_error& error) {
        if (is_open) {
            end = ConnectionLost{words_of(error.code())};
        } else {
            end = ConnectionFailed{words_of(error.code()), false, 0};
        }
    }
    if (!*alive || connection->dropped) co_return;
    if (connection->stream) connection->stream->close();
    if (end) happen(std::move(*end));
}

// False: nobody is interested any more.
asio::awaitable<bool> Client::open(ConnectionPtr connection) {
    const auto alive = alive_;
    const auto superseded = [&] { return !*alive || connection->dropped; };
    const TimePoint deadline = detail::now() + settings_.try_timeout;
    const Endpoints endpoints = co_await resolve(settings_.host, settings_.port, deadline);
    if (superseded()) co_return false;
    ears_.resolved(endpoints);
    auto socket = co_await connect_to_any(endpoints, settings_.from, deadline);
    if (superseded()) co_return false;
    connection->stream = co_await open_stream(std::move(socket), settings_.security, deadline);
    if (superseded()) co_return false;
    opened(*connection);
    co_return true;
}

void Client::opened(const Connection& connection) {
    const auto local = connection.stream->local();
    const auto remote = connection.stream->remote();
    happen(ConnectionOpened{text_of(local.address()), text_of(remote), is_local(remote.address())});
}

asio::awaitable<void> Client::read(ConnectionPtr connection) {
    const auto alive = alive_;
    while (*alive && !connection->dropped) {
        const std::size_t got =
            co_await connection->stream->read_some({buffer_.data(), buffer_.size()});
        if (!*alive || connection->dropped) co_return;
        if (!take_frames(connection, {buffer_.data(), got})) {
            throw system_error(
                boost::system::errc::make_error_code(boost::system::errc::protocol_error));
        }
    }
}

bool Client::take_frames(const ConnectionPtr& connection, std::string_view bytes) {
    connection->frames.append(bytes);
    while (const auto frame = connection->frames.next()) {
        auto message = decode_from_server(*frame);
        if (!message) return false;
        happen(std::move(*message));
        if (connection->dropped) return true;
    }
    return !connection->frames.broken();
}

asio::awaitable<void> Client::write(ConnectionPtr connection) {
    try {
        while (!connection->outgoing.empty()) {
            const std::string bytes = std::exchange(connection->outgoing, {});
            co_await connection->stream->write(bytes);
        }
    } catch (const system_error&) {
        // The reader hears of it too, and says so.
        connection->outgoing.clear();
    }
    connection->writing = false;
    if (connection->dropped) connection->stream->close();
}

}  // namespace ddrun::rendezvous
