#include "rendezvous/platform/last_words.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

namespace ddrun::detail {
namespace {

using Clock = std::chrono::steady_clock;

bool wait_for(int socket, short events, Clock::time_point deadline) {
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        pollfd waiting{socket, events, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
        if (ready >= 0 || errno != EINTR) return ready == 1;
    }
}

UniqueFd connect_to(const addrinfo& to, Clock::time_point deadline) {
    UniqueFd socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return socket;
    if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return socket;
    int error = errno;
    if (error == EINPROGRESS && wait_for(socket.get(), POLLOUT, deadline)) {
        socklen_t size = sizeof error;
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) socket.reset();
    return socket;
}

bool send_all(int socket, std::string_view bytes, Clock::time_point deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno != EAGAIN || !wait_for(socket, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

// Closing at once could take the bytes back: the kernel resets where something was not read.
void wait_for_close(int socket, Clock::time_point deadline) {
    ::shutdown(socket, SHUT_WR);
    std::array<char, 256> ignored;
    while (wait_for(socket, POLLIN, deadline)) {
        if (::recv(socket, ignored.data(), ignored.size(), 0) <= 0) return;
    }
}

}  // namespace

bool send_last_words(const std::string& address, const std::string& bytes,
                     std::chrono::milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos) return false;
    std::string host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) return false;
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> to(found, ::freeaddrinfo);
    const UniqueFd socket = connect_to(*to, deadline);
    if (!socket || !send_all(socket.get(), bytes, deadline)) return false;
    wait_for_close(socket.get(), deadline);
    return true;
}

}  // namespace ddrun::detail
