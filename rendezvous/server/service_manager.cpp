#include "rendezvous/server/service_manager.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

namespace ddrun::rendezvous {

void notify_service_manager(const std::string& socket, const std::string& state) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const bool usable = !socket.empty() && (socket.front() == '/' || socket.front() == '@');
    if (!usable || socket.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, socket.data(), socket.size());
    if (socket.front() == '@') address.sun_path[0] = '\0';  // an abstract one
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
    const UniqueFd sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!sender) return;
    (void)::sendto(sender.get(), state.data(), state.size(), MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace ddrun::rendezvous
