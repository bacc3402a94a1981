#include "launcher/runtime/master_port.hpp"

#include "launcher/runtime/port_holder.hpp"
#include "launcher/runtime/refusal.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ddrun::launcher {
namespace {

constexpr int attempts_for_a_free_port = 16;

struct Bound {
    UniqueFd socket;
    int port = 0;
    int error_number = 0;
};

int port_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        return 0;
    }
    // The port stands at the same place in both families.
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Bound bind_any_address(int family, int port) {
    Bound bound;
    bound.socket.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    const int off = 0;
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool six = family == AF_INET6;
    const auto* address =
        six ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
    const socklen_t size = six ? sizeof v6 : sizeof v4;
    const int socket = bound.socket.get();
    if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (six && ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
        ::bind(socket, address, size) != 0) {
        bound.error_number = errno;
    }
    bound.port = port_of(socket);
    return bound;
}

// Both families with one socket; a kernel without IPv6 gets IPv4 alone.
Bound bind_port(int port) {
    Bound both = bind_any_address(AF_INET6, port);
    const bool no_ipv6 = both.error_number == EAFNOSUPPORT || both.error_number == EADDRNOTAVAIL;
    return no_ipv6 ? bind_any_address(AF_INET, port) : std::move(both);
}

// A name in the abstract space belongs to one socket of the network namespace and ends with it.
UniqueFd claim(int port) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string name = master_port_claim(port);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
        socket.reset();
    }
    return socket;
}

[[noreturn]] void refuse(const std::string& address, int port, int error_number) {
    const bool six = address.find(':') != std::string::npos;
    std::string words = "cannot reserve MASTER_PORT " + (six ? "[" + address + "]" : address) +
                        ":" + std::to_string(port) + ": " + error_text(error_number);
    if (error_number == EADDRINUSE) {
        const std::string holder = describe_port_holder(port);
        words +=
            holder.empty() ? "; its holder is not visible to this user" : "; held by " + holder;
        words += "; leave --master-port out to get a free port";
    }
    throw Refusal(exit_code::system_refused, words);
}

}  // namespace

MasterPort MasterPort::unreserved(int port) {
    MasterPort offered;
    offered.number_ = port;
    return offered;
}

MasterPort MasterPort::reserve(std::optional<int> wanted, const std::string& address) {
    MasterPort reserved;
    for (int attempt = 0; attempt < attempts_for_a_free_port; ++attempt) {
        Bound bound = bind_port(wanted.value_or(0));
        if (bound.error_number != 0) {
            refuse(address, wanted.value_or(0), bound.error_number);
        }
        reserved.claim_ = claim(bound.port);
        reserved.socket_ = std::move(bound.socket);
        reserved.number_ = bound.port;
        if (reserved.claim_) {
            return reserved;
        }
        if (wanted) {
            break;
        }
    }
    refuse(address, reserved.number_, EADDRINUSE);
}

}  // namespace ddrun::launcher
