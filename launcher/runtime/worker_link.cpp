#include "launcher/runtime/worker_link.hpp"

#include "rendezvous/protocol/codec.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace ddrun::launcher {
namespace {

constexpr int spare_connections = 64;  // strangers and late hellos, on top of one a worker
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
    local_world_size_ = local_world_size;
}

void WorkerLink::end_round() {
    for (const Connection& connection : connections_) {
        connection->close();
    }
    connections_.clear();
    notices_.clear();
    round_ = 0;
}

void WorkerLink::send(int local_rank, const rendezvous::ToWorker& message,
                      std::shared_ptr<const UniqueFd> descriptor) {
    if (const Connection connection = find(local_rank)) {
        connection->send(message, std::move(descriptor));
    }
}

void WorkerLink::announce(const rendezvous::ToWorker& notice) {
    notices_.push_back(notice);
    const std::vector<Connection> now(connections_.begin(), connections_.end());
    for (const Connection& connection : now) {  // sending may find one dead and remove it
        if (connection->accepted()) {
            connection->send(notice);
        }
    }
}

void WorkerLink::catch_up() {
    (void)accept_all();
    const std::vector<Connection> now(connections_.begin(), connections_.end());
    for (const Connection& connection : now) {
        connection->catch_up();
    }
}

void WorkerLink::wait_for_connection() {
    listener_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                         [this](const boost::system::error_code& error) {
                             if (error) {
                                 return;
                             }
                             if (accept_all()) {
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

bool WorkerLink::accept_all() {
    for (;;) {
        UniqueFd socket(
            ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) {
            return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
        }
        ucred peer{};
        socklen_t size = sizeof peer;
        const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
        const auto most = static_cast<std::size_t>(local_world_size_ + spare_connections);
        if (known && peer.uid != ::geteuid()) {
            refuse_user(socket.get(), peer.uid);
        } else if (known && connections_.size() < most) {
            add_connection(std::move(socket), peer.pid);
        }
    }
}

void WorkerLink::add_connection(UniqueFd socket, int peer_pid) {
    WorkerConnection::Callbacks callbacks;
    callbacks.message = [this](WorkerConnection& connection, rendezvous::FromWorker message) {
        receive(connection, std::move(message));
    };
    callbacks.closed = [this](WorkerConnection& connection) { remove(connection); };
    const auto connection =
        std::make_shared<WorkerConnection>(io_, std::move(socket), peer_pid, std::move(callbacks));
    if (connection->open()) {
        connections_.push_back(connection);
        connection->start(patience_);
    }
}

void WorkerLink::receive(WorkerConnection& connection, rendezvous::FromWorker message) {
    const auto* hello = std::get_if<rendezvous::WorkerHello>(&message);
    if (connection.accepted() && hello == nullptr) {
        callbacks_.message(connection.local_rank(), std::move(message));
    } else if (!connection.accepted() && hello != nullptr) {
        greet(connection, *hello);
    } else {
        connection.send(rendezvous::Refused{"a connection starts with one hello"});
        connection.close_after_sending();
    }
}

void WorkerLink::greet(WorkerConnection& connection, const rendezvous::WorkerHello& hello) {
    const std::string objection = objection_to(hello);
    if (!objection.empty()) {
        connection.send(rendezvous::Refused{objection});
        return connection.close_after_sending();
    }
    connection.accept_as(hello.rank - first_rank_);
    connection.send(rendezvous::Welcome{});
    for (const rendezvous::ToWorker& notice : notices_) {
        connection.send(notice);
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
    if (hello.rank < first_rank_ || hello.rank - first_rank_ >= local_world_size_) {
        return "rank " + std::to_string(hello.rank) + " is not on this node";
    }
    if (const Connection holder = find(hello.rank - first_rank_)) {
        return "rank " + std::to_string(hello.rank) + " is connected already, from pid " +
               std::to_string(holder->peer_pid());
    }
    return {};
}

WorkerLink::Connection WorkerLink::find(int local_rank) const {
    const auto found = std::find_if(
        connections_.begin(), connections_.end(),
        [&](const Connection& connection) { return connection->local_rank() == local_rank; });
    return found == connections_.end() || local_rank < 0 ? nullptr : *found;
}

void WorkerLink::remove(WorkerConnection& connection) {
    const int local_rank = connection.local_rank();
    connections_.remove_if([&](const Connection& known) { return known.get() == &connection; });
    if (local_rank >= 0) {
        callbacks_.closed(local_rank);
    }
}

}  // namespace ddrun::launcher
