#include "rendezvous/server/server.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/transport/address.hpp"
#include "rendezvous/transport/deadline.hpp"
#include "rendezvous/transport/listener.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr int backlog = 4096;
constexpr std::size_t read_bytes = std::size_t{256} << 10;
// Descriptors come back as connections end; until then nobody spins.
constexpr auto after_exhaustion = std::chrono::milliseconds(100);
constexpr auto pulse_every = std::chrono::milliseconds(250);
constexpr auto late = std::chrono::milliseconds(250);
constexpr std::size_t many_greetings = 16;  // in one pulse
// Strangers are many: who is slow makes room.
constexpr Duration crowded_hello_timeout = std::chrono::seconds(2);
// Unfinished hellos may make us hold this much in all; small ones are always taken.
constexpr std::size_t most_unheard_bytes = std::size_t{4} << 20;
constexpr std::size_t small_hello_bytes = 4096;
// For the peer to close by itself: closing first might cost it our last words.
constexpr auto parting_time = std::chrono::seconds(1);
// A grant for ten thousand nodes is written in parts, so that it needs little memory.
constexpr std::size_t writes_a_turn = 256;
constexpr auto took_some_poll = std::chrono::milliseconds(10);
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

bool is_exhaustion(const error_code& error) {
    using namespace boost::system::errc;
    return error == too_many_files_open || error == too_many_files_open_in_system ||
           error == no_buffer_space || error == not_enough_memory;
}

// Nothing is spent on a connection that says nothing.
asio::awaitable<void> first_byte(tcp::socket& socket, TimePoint deadline) {
    const Deadline limit(socket, deadline);
    co_await socket.async_wait(tcp::socket::wait_read, asio::use_awaitable);
}

}  // namespace

Server::Server(asio::io_context& io, ServerSettings settings)
    : io_(io),
      settings_(std::move(settings)),
      security_(std::make_shared<const Security>(settings_.security)),
      jobs_(settings_.jobs),
      room_(io, TimePoint::max()),
      timer_(io),
      pulse_(io),
      last_look_(detail::now()),
      last_beat_(last_look_),
      started_(last_look_),
      buffer_(read_bytes) {
    beat();
}

Server::~Server() {
    *alive_ = false;
    close();
}

tcp::endpoint Server::listen(const tcp::endpoint& endpoint) {
    return listen(open_listener(io_.get_executor(), endpoint, backlog));
}

tcp::endpoint Server::listen(tcp::acceptor listening) {
    const auto acceptor = std::make_shared<tcp::acceptor>(std::move(listening));
    acceptors_.push_back(acceptor);
    asio::co_spawn(io_, accept(acceptor), asio::detached);
    return acceptor->local_endpoint();
}

void Server::close() {
    error_code ignored;
    for (const auto& acceptor : acceptors_) acceptor->close(ignored);
    for (const auto& [id, peer] : peers_) peer->stream->close();
    for (const auto& [at, held] : closings_) {
        if (const auto peer = held.lock()) peer->stream->close();
    }
    peers_.clear();
    to_write_.clear();
    room_.cancel();
    timer_.cancel();
    pulse_.cancel();
}

ServerStatus Server::status() const {
    const TimePoint now = detail::now();
    return {settings_.jobs.build, now - started_,  peers_.size(),
            strangers_,           guests_.total(), jobs_.status(now)};
}

// --- the door -----------------------------------------------------------------------------------

asio::awaitable<void> Server::accept(AcceptorPtr acceptor) {
    const auto alive = alive_;
    while (*alive && acceptor->is_open()) {
        if (strangers_ >= settings_.most_strangers) {
            (void)co_await room_.async_wait(quietly);
            continue;
        }
        auto [error, socket] = co_await acceptor->async_accept(quietly);
        if (!*alive || error == asio::error::operation_aborted) co_return;
        if (is_exhaustion(error)) {
            if (!std::exchange(exhausted_, true)) {
                settings_.say("cannot take more connections for now: " + error.message());
            }
            asio::steady_timer pause(io_, after_exhaustion);
            (void)co_await pause.async_wait(quietly);
        } else if (!error) {  // else the peer went away between
            exhausted_ = false;
            ++strangers_;
            asio::co_spawn(io_, meet(std::move(socket)), asio::detached);
        }
    }
}

asio::awaitable<void> Server::meet(tcp::socket socket) {
    const auto alive = alive_;
    const auto security = security_;
    error_code gone;
    const tcp::endpoint from = socket.remote_endpoint(gone);
    Accepted accepted;
    std::string why;
    try {
        const TimePoint begun = detail::now();
        const bool crowded = strangers_ > settings_.most_strangers / 2;
        const Duration patience = crowded ? std::min(crowded_hello_timeout, settings_.hello_timeout)
                                          : settings_.hello_timeout;
        co_await first_byte(socket, begun + settings_.silence_timeout);
        accepted = co_await accept_stream(std::move(socket), *security, begun + patience);
    } catch (const NotAuthorised& refusal) {
        why = refusal.what();
    } catch (const std::exception&) {
        // Foreign, silent or gone: all the same to us.
    }
    if (!*alive) co_return;
    if (accepted.stream) co_return admit(std::move(accepted.stream));
    stranger_left();
    if (accepted.obituary.empty()) co_return turn_away(from, why);
    read_obituary(accepted.obituary);
}

void Server::admit(std::unique_ptr<Stream> stream) {
    const auto peer = std::make_shared<Peer>();
    peer->id = ++last_id_;
    peer->stream = std::move(stream);
    peers_.emplace(peer->id, peer);
    closings_.emplace(detail::now() + settings_.hello_timeout, peer);
    asio::co_spawn(io_, serve(peer), asio::detached);
}

void Server::stranger_left() {
    if (strangers_-- == settings_.most_strangers) room_.cancel();
}

void Server::turn_away(const tcp::endpoint& from, const std::string& why) {
    guests_.turned_away(text_of(from.address()), why, detail::now());
}

void Server::read_obituary(const std::string& frame) {
    const auto message = decode_from_node(frame);
    const auto* obituary = message ? std::get_if<Obituary>(&*message) : nullptr;
    if (obituary == nullptr) return;
    perform(jobs_.obituary(*obituary, look_at_clock()));
    end_turn_soon();
}

// --- one peer -----------------------------------------------------------------------------------

asio::awaitable<void> Server::serve(PeerPtr peer) {
    const auto alive = alive_;
    bool malformed = false;
    try {
        co_await read(peer);
        malformed = true;
    } catch (const std::exception&) {
        // Closed, reset or broken: the same to the job.
    }
    if (!*alive) co_return;
    if (!peer->greeted) {
        greeted(*peer);
        turn_away(peer->stream->remote(), "");
    } else if (malformed) {
        turn_away(peer->stream->remote(), "what it sent is no message of this protocol");
    }
    peer->stream->close();
    if (peers_.erase(peer->id) != 0) happen(PeerGone{peer->id});
}

// Until it ends; comes back where that is malformed.
asio::awaitable<void> Server::read(PeerPtr peer) {
    const auto alive = alive_;
    for (;;) {
        const std::size_t got = co_await peer->stream->read_some(buffer_);
        if (!*alive) co_return;
        if (peer->parting) continue;
        if (!take_frames(peer, {buffer_.data(), got})) co_return;
        if (peer->outgoing.size() > settings_.unsent_to_pause) {
            co_await until_it_took_some(peer);
            if (!*alive) co_return;
        }
    }
}

asio::awaitable<void> Server::until_it_took_some(PeerPtr peer) {
    const auto alive = alive_;
    asio::steady_timer timer(io_);
    while (*alive && !peer->parting && peer->outgoing.size() > settings_.unsent_to_pause) {
        timer.expires_after(took_some_poll);
        (void)co_await timer.async_wait(quietly);
    }
}

// False: malformed.
bool Server::take_frames(const PeerPtr& peer, std::string_view bytes) {
    peer->frames.append(bytes);
    while (const auto frame = peer->frames.next()) {
        auto message = decode_from_node(*frame);
        if (!message) return false;
        if (std::holds_alternative<NodeHello>(*message) == peer->greeted) return false;
        if (!peer->greeted) {
            greeted(*peer);
            ++greetings_;
        }
        happen(PeerSaid{peer->id, std::move(*message)});
        if (peer->parting) return true;
    }
    return !peer->frames.broken() && may_hold(*peer, bytes.size());
}

bool Server::may_hold(Peer& peer, std::size_t more) {
    if (peer.greeted) return true;
    peer.unheard_bytes += more;
    unheard_bytes_ += more;
    return unheard_bytes_ <= most_unheard_bytes || peer.unheard_bytes <= small_hello_bytes;
}

// Or it never will be.
void Server::greeted(Peer& peer) {
    peer.greeted = true;
    peer.frames.set_limit(max_node_frame_bytes);
    unheard_bytes_ -= std::exchange(peer.unheard_bytes, 0);
    stranger_left();
}

asio::awaitable<void> Server::write(PeerPtr peer) {
    try {
        while (!peer->outgoing.empty()) {
            const std::string bytes = std::exchange(peer->outgoing, {});
            co_await peer->stream->write(bytes);
        }
    } catch (const std::exception&) {
        peer->outgoing = {};
        peer->stream->close();  // which ends its reader
    }
    peer->writing = false;
}

void Server::part_with(const PeerPtr& peer) {
    peer->parting = true;
    closings_.emplace(detail::now() + parting_time, peer);
    peers_.erase(peer->id);
}

void Server::close_overdue(TimePoint now) {
    while (!closings_.empty() && closings_.begin()->first <= now) {
        const PeerPtr peer = closings_.begin()->second.lock();
        closings_.erase(closings_.begin());
        if (peer && (peer->parting || !peer->greeted)) peer->stream->close();
    }
}

// --- events to the jobs -------------------------------------------------------------------------

// A thread that was stopped or overloaded has not heard its peers, whatever they said.
TimePoint Server::look_at_clock() {
    const TimePoint now = detail::now();
    const Duration unheard = now - std::exchange(last_look_, now);
    if (unheard > pulse_every + late) {
        last_beat_ = now;
        perform(jobs_.step(ServerWasSlow{unheard}, now));
    }
    return now;
}

void Server::happen(const ServiceEvent& event) {
    const TimePoint now = look_at_clock();
    perform(jobs_.step(event, now));
    end_turn_soon();
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
    append(peer->outgoing, action.message);
    if (peer->outgoing.size() > settings_.unsent_to_drop) {
        settings_.say("dropped " + text_of(peer->stream->remote()) + ": it has not taken " +
                      std::to_string(peer->outgoing.size() >> 20) + " MiB that were sent to it");
        peer->outgoing = {};
        peer->stream->close();  // its reader tells the job
    } else if (!peer->writing && !std::exchange(peer->queued, true)) {
        to_write_.push_back(peer);
    }
}

void Server::act(const ClosePeer& action) {
    const auto found = peers_.find(action.connection);
    if (found != peers_.end()) part_with(PeerPtr(found->second));
}

// What one turn of the loop brings is answered together, and deadlines are asked for once.
void Server::end_turn_soon() {
    if (std::exchange(turn_ends_, true)) return;
    asio::post(io_, [this, alive = alive_] {
        if (*alive) end_turn();
    });
}

void Server::end_turn() {
    turn_ends_ = false;
    write_some();
    set_timer();
    if (!to_write_.empty()) end_turn_soon();
    if (told_ && jobs_.all_told()) told_();
}

void Server::write_some() {
    for (std::size_t n = 0; n < writes_a_turn && !to_write_.empty(); ++n) {
        const PeerPtr peer = std::move(to_write_.front());
        to_write_.pop_front();
        peer->queued = false;
        peer->writing = true;
        asio::co_spawn(io_, write(peer), asio::detached);
    }
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
        const TimePoint now = look_at_clock();
        perform(jobs_.advance_to(now));
        end_turn_soon();
    });
}

void Server::beat() {
    const TimePoint now = look_at_clock();
    const Duration since_last = now - last_beat_;
    last_beat_ = now;
    // They come in crowds: who is still missing may wait in a queue, here or on its way.
    const bool crowded =
        std::exchange(greetings_, 0) >= many_greetings || strangers_ >= settings_.most_strangers;
    if (crowded || since_last > pulse_every + late) happen(ServerWasSlow{since_last});
    close_overdue(now);
    for (const std::string& line : guests_.lines_due(now)) settings_.say(line);
    pulse_.expires_after(pulse_every);
    pulse_.async_wait([this, alive = alive_](const error_code& error) {
        if (!error && *alive) beat();
    });
}

}  // namespace ddrun::rendezvous
