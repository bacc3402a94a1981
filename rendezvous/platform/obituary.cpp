#include "rendezvous/platform/obituary.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/protocol/preface.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>

namespace ddrun::detail {
namespace {

struct FreeAddress {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Address = std::unique_ptr<addrinfo, FreeAddress>;

Address address_of(std::string_view server) {
    const std::size_t colon = server.rfind(':');
    if (colon == server.npos) return nullptr;
    std::string_view host = server.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port(server.substr(colon + 1));
    if (::getaddrinfo(std::string(host).c_str(), port.c_str(), &hints, &found) != 0) return nullptr;
    return Address(found);
}

// False: the time is over, or the socket is broken.
bool wait_for(int socket, short events, TimePoint end) {
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now()).count();
        if (left <= 0) return false;
        pollfd watched{socket, events, 0};
        const int ready = ::poll(&watched, 1, static_cast<int>(left));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

bool connect(int socket, const addrinfo& to, TimePoint end) {
    if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS && errno != EINTR) return false;
    if (!wait_for(socket, POLLOUT, end)) return false;
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool send_all(int socket, std::string_view bytes, TimePoint end) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (!wait_for(socket, POLLOUT, end)) {
            return false;
        }
    }
    return true;
}

bool is_closed_by_peer(int socket, TimePoint end) {
    std::array<char, 256> ignored;
    while (wait_for(socket, POLLIN, end)) {
        const ssize_t got = ::recv(socket, ignored.data(), ignored.size(), 0);
        if (got == 0) return true;
        if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
    }
    return false;
}

bool send_to(const std::string& server, std::string_view message, TimePoint end) {
    const Address to = address_of(server);
    if (!to) return false;
    const UniqueFd socket(::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket || !connect(socket.get(), *to, end)) return false;
    if (!send_all(socket.get(), message, end)) return false;
    ::shutdown(socket.get(), SHUT_WR);
    return is_closed_by_peer(socket.get(), end);
}

}  // namespace

std::string obituary_message(const rendezvous::Obituary& obituary) {
    return rendezvous::preface(rendezvous::PrefaceKind::obituary) +
           rendezvous::encode(rendezvous::FromNode(obituary));
}

bool send_obituary(const std::vector<std::string>& servers, std::string_view message,
                   Duration limit) noexcept try {
    const TimePoint end = now() + limit;
    auto to_try = static_cast<Duration::rep>(servers.size());
    for (const std::string& server : servers) {
        const TimePoint begin = now();
        if (send_to(server, message, begin + (end - begin) / to_try--)) return true;
    }
    return false;
} catch (...) {  // out of memory
    return false;
}

}  // namespace ddrun::detail
