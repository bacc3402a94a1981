#include "tests/bench/rendezvous_agents.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/node_codec.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>
#include <variant>

namespace ddrun::bench {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace ddrun::rendezvous;

namespace {

NodeLinkRules rules_of(int number, int of) {
    NodeLinkRules rules;
    rules.terms.job_id = "bench";
    rules.terms.min_nodes = of;
    rules.terms.max_nodes = of;
    rules.offer.node_name = "node" + std::to_string(number);
    rules.offer.slots = 8;
    rules.offer.address = "10." + std::to_string(number >> 16) + "." +
                          std::to_string(number >> 8 & 255) + "." + std::to_string(number & 255);
    rules.offer.port = 40000;
    std::string incarnation = std::to_string(number);
    rules.node_incarnation = std::string(32 - incarnation.size(), '0') + incarnation;
    rules.obituary_token = rules.node_incarnation;
    rules.build = "0.1.0";
    rules.endpoint = "127.0.0.1";
    rules.jitter_seed = static_cast<std::uint64_t>(number) + 1;
    return rules;
}

}  // namespace

CrowdAgent::CrowdAgent(Crowd& crowd, int number, int of)
    : crowd_(crowd), link_(rules_of(number, of)), timer_(crowd.io) {}

void CrowdAgent::start() {
    perform(link_.advance_to(detail::now()));
}

void CrowdAgent::drop_connection() {
    if (!connection_) return;
    act(CloseConnection{});
    happen(ConnectionLost{"cut by the bench"});
}

void CrowdAgent::happen(NodeLinkEvent event) {
    perform(link_.step(std::move(event), detail::now()));
}

void CrowdAgent::perform(NodeLink::Actions actions) {
    for (const NodeLinkAction& action : actions) {
        std::visit([this](const auto& one) { act(one); }, action);
    }
    set_timer();
}

void CrowdAgent::set_timer() {
    const auto next = link_.next_deadline();
    if (next == timer_set_for_) return;
    timer_set_for_ = next;
    if (!next) return;
    timer_.expires_at(*next);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (error) return;
        timer_set_for_.reset();
        perform(link_.advance_to(detail::now()));
    });
}

void CrowdAgent::act(const OpenConnection&) {
    act(CloseConnection{});
    connection_ = std::make_shared<Connection>();
    asio::co_spawn(crowd_.io, live(connection_), asio::detached);
}

void CrowdAgent::act(const CloseConnection&) {
    if (!connection_) return;
    connection_->dropped = true;
    if (connection_->stream) connection_->stream->close();
    connection_.reset();
}

void CrowdAgent::act(const SendToServer& action) {
    if (!connection_ || !connection_->stream) return;
    append(connection_->outgoing, action.message);
    if (std::exchange(connection_->writing, true)) return;
    asio::co_spawn(crowd_.io, write(connection_), asio::detached);
}

void CrowdAgent::act(const Deliver& action) {
    const auto* said = std::get_if<FromCoordinator>(&action.payload);
    if (said == nullptr || std::holds_alternative<Notice>(*said)) return;
    if (std::holds_alternative<RoundGranted>(*said)) {
        ++crowd_.granted;
        crowd_.last_grant = detail::now();
        return;
    }
    if (crowd_.stopped++ > 0) return;
    if (const auto* verdict = std::get_if<Verdict>(said)) crowd_.trouble = verdict->cause.words;
    if (const auto* stop = std::get_if<StopRound>(said)) crowd_.trouble = stop->cause.words;
}

void CrowdAgent::act(const Fence& action) {
    if (action.step == FenceStep::kill && crowd_.stopped++ == 0) crowd_.trouble = action.words;
}

// Hands its place on.
void CrowdAgent::opened() {
    if (crowd_.queue.empty()) {
        --crowd_.opening;
        return;
    }
    crowd_.queue.front()->cancel();
    crowd_.queue.pop_front();
}

asio::awaitable<void> CrowdAgent::live(ConnectionPtr connection) {
    std::string failure;
    // Ten thousand machines would not wait for each other's handshakes.
    if (crowd_.opening >= most_opening) {
        const auto turn = std::make_shared<asio::steady_timer>(crowd_.io, TimePoint::max());
        crowd_.queue.push_back(turn);
        boost::system::error_code called;
        co_await turn->async_wait(asio::redirect_error(asio::use_awaitable, called));
    } else {
        ++crowd_.opening;
    }
    try {
        if (crowd_.first_connection == TimePoint{}) crowd_.first_connection = detail::now();
        tcp::socket socket(crowd_.io);
        co_await socket.async_connect(crowd_.server, asio::use_awaitable);
        const TimePoint deadline = detail::now() + std::chrono::seconds(10);
        connection->stream = co_await open_stream(std::move(socket), crowd_.security, deadline);
        opened();
        if (connection->dropped) co_return;
        happen(ConnectionOpened{"127.0.0.1", "127.0.0.1:1", false});
        while (!connection->dropped) {
            const std::size_t got = co_await connection->stream->read_some(crowd_.buffer);
            take(connection, {crowd_.buffer.data(), got});
        }
    } catch (const std::exception& error) {
        failure = error.what();
        if (!connection->stream) opened();
    }
    if (connection->dropped) co_return;
    connection_.reset();
    ++crowd_.lost;
    if (connection->stream) {
        connection->stream->close();
        happen(ConnectionLost{failure});
    } else {
        happen(ConnectionFailed{failure, false, 0});
    }
}

void CrowdAgent::take(const ConnectionPtr& connection, std::string_view bytes) {
    connection->frames.append(bytes);
    while (const auto frame = connection->frames.next()) {
        if (connection->dropped) return;
        if (auto message = decode_from_server(*frame)) happen(std::move(*message));
    }
}

asio::awaitable<void> CrowdAgent::write(ConnectionPtr connection) {
    try {
        while (!connection->outgoing.empty()) {
            const std::string bytes = std::exchange(connection->outgoing, {});
            co_await connection->stream->write(bytes);
        }
    } catch (const std::exception&) {
        connection->outgoing.clear();
    }
    connection->writing = false;
}

}  // namespace ddrun::bench
