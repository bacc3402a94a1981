#include "launcher/runtime/worker_link.hpp"

#include "rendezvous/protocol/codec.hpp"

#include <boost/asio/post.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

namespace ddrun::launcher {
namespace {

constexpr std::size_t spare_connections = 64;  // strangers and late hellos, on top of one a worker
constexpr std::size_t accepted_at_once = 256;  // then others have their turn
constexpr auto descriptor_pause = std::chrono::milliseconds(100);

UniqueFd listen_on(const std::string& name) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(),
                std::min(name.size(), sizeof address.sun_path - 1));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
        throw std::system_error(errno, std::generic_category(), "agent socket @" + name);
    }
    return socket;
}

// Nothing is read from another user; a worker that gave up its rights learns why it is not served.
void refuse_user(int socket, uid_t uid) {
    const std::string answer = rendezvous::encode(
        rendezvous::Refused{"it runs as uid " + std::to_string(uid) + ", ddrun as uid " +
                            std::to_string(::geteuid()) + "; start ddrun itself as that user"});
    (void)!::send(socket, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

WorkerLink::WorkerLink(boost::asio::io_context& io, const std::string& name, Callbacks callbacks,
                       std::chrono::milliseconds patience)
    : io_(io),
      name_(name),
      callbacks_(std::move(callbacks)),
      patience_(patience),
      listener_(io, listen_on(name).release()),
      retry_(io) {
    wait_for_connection();
}

void WorkerLink::begin_round(int round, int first_rank, int local_world_size) {
    end_round();
    round_ = round;
    first_rank_ = first_rank;
    by_rank_.resize(static_cast<std::size_t>(local_world_size));
}

void WorkerLink::end_round() {
    flush_all();
    for (const auto& [address, connection] : connections_) {
        connection->close();
    }
    connections_.clear();
    by_rank_.clear();
    notices_.clear();
    round_ = 0;
}

// --- what workers are told ----------------------------------------------------------------------

void WorkerLink::send(int local_rank, const rendezvous::ToWorker& message,
                      std::shared_ptr<const UniqueFd> descriptor) {
    if (const Connection connection = find(local_rank)) {
        queue(connection, message, std::move(descriptor));
    }
}

void WorkerLink::queue(Connection connection, const rendezvous::ToWorker& message,
                       std::shared_ptr<const UniqueFd> descriptor) {
    connection->queue(message, std::move(descriptor));
    if (!std::exchange(connection->awaits_flush, true)) {
        to_flush_.push_back(std::move(connection));
    }
    if (!std::exchange(*flush_is_due_, true)) {
        boost::asio::post(io_, [this, due = std::weak_ptr<bool>(flush_is_due_)] {
            if (!due.expired()) {
                flush_all();
            }
        });
    }
}

void WorkerLink::flush_all() {
    *flush_is_due_ = false;
    const std::vector<Connection> now = std::exchange(to_flush_, {});
    for (const Connection& connection : now) {
        connection->awaits_flush = false;
        connection->flush();  // may find it dead and remove it
    }
}

void WorkerLink::announce(const rendezvous::ToWorker& notice) {
    notices_.push_back(notice);
    for (const Connection& connection : by_rank_) {
        if (connection) {
            queue(connection, notice, nullptr);
        }
    }
    flush_all();
}

// --- who connects -------------------------------------------------------------------------------

void WorkerLink::wait_for_connection() {
    listener_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                         [this](const boost::system::error_code& error) {
                             if (error) {
                                 return;
                             }
                             if (accept_some(accepted_at_once)) {
                                 return wait_for_connection();
                             }
                             // The connection stays in the queue; waiting for it at once would
                             // spin.
                             retry_.expires_after(descriptor_pause);
                             retry_.async_wait([this](const boost::system::error_code& stopped) {
                                 if (!stopped) {
                                     wait_for_connection();
                                 }
                             });
                         });
}

std::size_t WorkerLink::most_connections() const {
    return by_rank_.size() + spare_connections;
}

bool WorkerLink::accept_some(std::size_t most) {
    for (; most > 0; --most) {
        UniqueFd socket(
            ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) {
            return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
        }
        ucred peer{};
        socklen_t size = sizeof peer;
        const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
        if (known && peer.uid != ::geteuid()) {
            refuse_user(socket.get(), peer.uid);
        } else if (known && connections_.size() < most_connections()) {
            add_connection(std::move(socket), peer.pid);
        }
    }
    return true;
}

void WorkerLink::add_connection(UniqueFd socket, int peer_pid) {
    WorkerConnection::Callbacks callbacks;
    callbacks.message = [this](WorkerConnection& connection, rendezvous::FromWorker message) {
        receive(connection, std::move(message));
    };
    callbacks.read = [this] { flush_all(); };
    callbacks.closed = [this](WorkerConnection& connection) { remove(connection); };
    const auto connection = std::make_shared<WorkerConnection>(io_, std::move(socket), peer_pid,
                                                               buffer_, std::move(callbacks));
    if (connection->open()) {
        connections_.emplace(connection.get(), connection);
        connection->start(patience_);
    }
}

void WorkerLink::catch_up(int local_rank) {
    (void)accept_some(most_connections());
    std::vector<Connection> asked;
    for (const auto& [address, connection] : connections_) {
        if (!connection->accepted() || connection->local_rank() == local_rank) {
            asked.push_back(connection);
        }
    }
    for (const Connection& connection : asked) {
        connection->catch_up();
    }
}

// --- what workers say ---------------------------------------------------------------------------

void WorkerLink::receive(WorkerConnection& connection, rendezvous::FromWorker message) {
    const auto* hello = std::get_if<rendezvous::WorkerHello>(&message);
    if (connection.accepted() && hello == nullptr) {
        callbacks_.message(connection.local_rank(), std::move(message));
    } else if (!connection.accepted() && hello != nullptr) {
        greet(connection, *hello);
    } else {
        connection.queue(rendezvous::Refused{"a connection starts with one hello"});
        connection.close_after_sending();
    }
}

void WorkerLink::greet(WorkerConnection& connection, const rendezvous::WorkerHello& hello) {
    const std::string objection = objection_to(hello);
    if (!objection.empty()) {
        connection.queue(rendezvous::Refused{objection});
        return connection.close_after_sending();
    }
    const int local_rank = hello.rank - first_rank_;
    connection.accept_as(local_rank);
    const Connection holder = connection.shared_from_this();
    by_rank_[static_cast<std::size_t>(local_rank)] = holder;
    queue(holder, rendezvous::Welcome{}, nullptr);
    for (const rendezvous::ToWorker& notice : notices_) {
        queue(holder, notice, nullptr);
    }
}

std::string WorkerLink::objection_to(const rendezvous::WorkerHello& hello) const {
    if (hello.version != rendezvous::worker_protocol_version) {
        return "the worker speaks protocol version " + std::to_string(hello.version) +
               ", ddrun speaks " + std::to_string(rendezvous::worker_protocol_version) +
               "; build both from one release";
    }
    if (hello.round != round_) {
        return "round " + std::to_string(hello.round) + " is over";
    }
    const auto workers = static_cast<int>(by_rank_.size());
    if (hello.rank < first_rank_ || hello.rank - first_rank_ >= workers) {
        return "rank " + std::to_string(hello.rank) + " is not on this node";
    }
    if (const Connection holder = find(hello.rank - first_rank_)) {
        return "rank " + std::to_string(hello.rank) + " is connected already, from pid " +
               std::to_string(holder->peer_pid());
    }
    return {};
}

WorkerLink::Connection WorkerLink::find(int local_rank) const {
    const auto index = static_cast<std::size_t>(local_rank);
    return local_rank >= 0 && index < by_rank_.size() ? by_rank_[index] : nullptr;
}

void WorkerLink::remove(WorkerConnection& connection) {
    const int local_rank = connection.local_rank();
    const auto found = connections_.find(&connection);
    if (found == connections_.end()) {
        return;
    }
    const Connection kept = found->second;  // until the callback is through
    connections_.erase(found);
    if (local_rank >= 0) {
        by_rank_[static_cast<std::size_t>(local_rank)].reset();
        callbacks_.closed(local_rank);
    }
}

}  // namespace ddrun::launcher
