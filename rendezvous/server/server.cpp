#include "rendezvous/server/server.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/node_codec.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>
#include <variant>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

namespace {

constexpr int backlog = 4096;
constexpr std::size_t read_bytes = std::size_t{256} << 10;
// Descriptors come back as connections end; until then nobody spins.
constexpr auto after_exhaustion = std::chrono::milliseconds(100);
constexpr auto pulse_every = std::chrono::milliseconds(250);
constexpr auto late = std::chrono::milliseconds(250);
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

bool is_exhaustion(const error_code& error) {
    using namespace boost::system::errc;
    return error == too_many_files_open || error == too_many_files_open_in_system ||
           error == no_buffer_space || error == not_enough_memory;
}

}  // namespace

Server::Server(asio::io_context& io, ServerSettings settings)
    : io_(io),
      settings_(std::move(settings)),
      jobs_(settings_.jobs),
      timer_(io),
      pulse_(io),
      buffer_(read_bytes) {
    pulse_due_ = detail::now();
    beat();
}

Server::~Server() {
    *alive_ = false;
    close();
}

tcp::endpoint Server::listen(const tcp::endpoint& endpoint) {
    const auto acceptor = std::make_shared<tcp::acceptor>(io_);
    acceptor->open(endpoint.protocol());
    acceptor->set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.protocol() == tcp::v6()) acceptor->set_option(asio::ip::v6_only(true));
    acceptor->bind(endpoint);
    acceptor->listen(backlog);
    acceptors_.push_back(acceptor);
    asio::co_spawn(io_, accept(acceptor), asio::detached);
    return acceptor->local_endpoint();
}

void Server::close() {
    error_code ignored;
    for (const auto& acceptor : acceptors_) acceptor->close(ignored);
    for (const auto& [id, peer] : peers_) peer->stream->close();
    peers_.clear();
    timer_.cancel();
    pulse_.cancel();
}

std::vector<JobStatus> Server::status() const {
    return jobs_.status(detail::now());
}

// --- the door -----------------------------------------------------------------------------------

asio::awaitable<void> Server::accept(std::shared_ptr<tcp::acceptor> acceptor) {
    const auto alive = alive_;
    bool exhausted = false;
    while (acceptor->is_open()) {
        auto [error, socket] = co_await acceptor->async_accept(quietly);
        if (!*alive || error == asio::error::operation_aborted) co_return;
        if (is_exhaustion(error)) {
            if (!std::exchange(exhausted, true)) {
                settings_.say("cannot take more connections: " + error.message());
            }
            asio::steady_timer pause(io_, after_exhaustion);
            (void)co_await pause.async_wait(quietly);
            if (!*alive) co_return;
            continue;
        }
        if (error) continue;                                   // the peer went away between
        if (strangers_ >= settings_.most_strangers) continue;  // closes it
        exhausted = false;
        ++strangers_;
        asio::co_spawn(io_, welcome(std::move(socket)), asio::detached);
    }
}

asio::awaitable<void> Server::welcome(tcp::socket socket) {
    const auto alive = alive_;
    error_code gone;
    const tcp::endpoint from = socket.remote_endpoint(gone);
    std::string reason;
    Accepted accepted;
    try {
        accepted = co_await accept_stream(std::move(socket), settings_.security,
                                          detail::now() + settings_.handshake_timeout);
    } catch (const std::exception& error) {
        reason = error.what();
    }
    if (!*alive) co_return;
    --strangers_;
    if (!accepted.obituary.empty()) co_return read_obituary(accepted.obituary);
    if (!accepted.stream) co_return turn_away(from, reason);
    const auto peer = std::make_shared<Peer>();
    peer->id = ++last_id_;
    peer->stream = std::move(accepted.stream);
    peers_.emplace(peer->id, peer);
    asio::co_spawn(io_, serve(peer), asio::detached);
}

void Server::turn_away(const tcp::endpoint& from, const std::string& reason) {
    const auto words = guests_.turned_away(from.address(), reason, detail::now());
    if (words) settings_.say(*words);
}

void Server::read_obituary(const std::string& frame) {
    const auto message = decode_from_node(frame);
    const auto* obituary = message ? std::get_if<Obituary>(&*message) : nullptr;
    if (obituary == nullptr) return;
    perform(jobs_.obituary(*obituary, detail::now()));
    set_timer();
}

// --- one peer -----------------------------------------------------------------------------------

asio::awaitable<void> Server::serve(PeerPtr peer) {
    const auto alive = alive_;
    const tcp::endpoint from = peer->stream->remote();
    try {
        for (;;) {
            const std::size_t got =
                co_await peer->stream->read_some({buffer_.data(), buffer_.size()});
            if (!*alive || !peers_.contains(peer->id)) break;
            if (!take_frames(peer, {buffer_.data(), got})) {
                turn_away(from, "malformed messages");
                break;
            }
        }
    } catch (const std::exception&) {
        // Closed, reset or broken: the same to the job.
    }
    if (!*alive || !peers_.contains(peer->id)) co_return;
    drop(*peer);
    happen(PeerGone{peer->id});
}

bool Server::take_frames(const PeerPtr& peer, std::string_view bytes) {
    peer->frames.append(bytes);
    while (const auto frame = peer->frames.next()) {
        auto message = decode_from_node(*frame);
        if (!message) return false;
        if (std::holds_alternative<NodeHello>(*message) == peer->greeted) return false;
        if (!std::exchange(peer->greeted, true)) peer->frames.set_limit(max_frame_bytes);
        happen(PeerSaid{peer->id, std::move(*message)});
        if (peer->closing || !peers_.contains(peer->id)) return true;
    }
    return !peer->frames.broken();
}

asio::awaitable<void> Server::write(PeerPtr peer) {
    try {
        while (!peer->outgoing.empty()) {
            const std::string bytes = std::exchange(peer->outgoing, {});
            co_await peer->stream->write(bytes);
        }
    } catch (const std::exception&) {
        peer->outgoing.clear();  // its reader ends too
    }
    peer->writing = false;
    if (peer->closing) peer->stream->close();
}

// --- events to the jobs -------------------------------------------------------------------------

void Server::happen(const ServiceEvent& event) {
    perform(jobs_.step(event, detail::now()));
    set_timer();
    if (told_ && jobs_.all_told()) told_();
}

void Server::perform(const Jobs::Actions& actions) {
    for (const ServiceAction& action : actions) {
        std::visit([this](const auto& one) { act(one); }, action);
    }
}

void Server::act(const SendToPeer& action) {
    const auto found = peers_.find(action.connection);
    if (found == peers_.end()) return;
    const PeerPtr& peer = found->second;
    peer->outgoing += encode(action.message);
    if (peer->outgoing.size() > settings_.most_unsent_bytes) {
        turn_away(peer->stream->remote(), "it does not take what it is sent");
        peer->stream->close();  // its reader tells the job
        return;
    }
    if (std::exchange(peer->writing, true)) return;
    asio::co_spawn(io_, write(peer), asio::detached);
}

void Server::act(const ClosePeer& action) {
    const auto found = peers_.find(action.connection);
    if (found == peers_.end()) return;
    drop(*found->second);
}

// What was said before still goes out.
void Server::drop(Peer& peer) {
    peer.closing = true;
    if (!peer.writing) peer.stream->close();
    peers_.erase(peer.id);
}

void Server::set_timer() {
    const auto next = jobs_.next_deadline();
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
        perform(jobs_.advance_to(detail::now()));
        set_timer();
        if (told_ && jobs_.all_told()) told_();
    });
}

// A thread that was stopped or overloaded has not heard its peers, whatever they said.
void Server::beat() {
    const TimePoint now = detail::now();
    const Duration lateness = now - pulse_due_;
    if (lateness > late) happen(ServerWasSlow{lateness});
    pulse_due_ = now + pulse_every;
    pulse_.expires_at(pulse_due_);
    pulse_.async_wait([this, alive = alive_](const error_code& error) {
        if (!error && *alive) beat();
    });
}

}  // namespace ddrun::rendezvous
