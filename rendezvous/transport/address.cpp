#include "rendezvous/transport/address.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// Dummies do no ARP, but neither do some interfaces that are real (ipvlan): the driver tells.
bool is_dummy(const ifaddrs& interface) {
    const unsigned flags = interface.ifa_flags;
    if ((flags & IFF_NOARP) == 0 || (flags & (IFF_POINTOPOINT | IFF_LOOPBACK)) != 0) return false;
    ethtool_drvinfo facts{};
    facts.cmd = ETHTOOL_GDRVINFO;
    ifreq request{};
    std::strncpy(request.ifr_name, interface.ifa_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&facts);
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const bool told = ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
    return !told || std::string_view(facts.driver) == "dummy";
}

std::optional<asio::ip::address> address_of(const sockaddr* raw) {
    if (raw == nullptr) return std::nullopt;
    if (raw->sa_family == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(raw);
        return asio::ip::address_v4(ntohl(v4->sin_addr.s_addr));
    }
    if (raw->sa_family != AF_INET6) return std::nullopt;
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(raw);
    asio::ip::address_v6::bytes_type bytes;
    std::copy_n(v6->sin6_addr.s6_addr, bytes.size(), bytes.begin());
    return asio::ip::address_v6(bytes, v6->sin6_scope_id);
}

std::string known_addresses() {
    std::string text;
    for (const LocalAddress& local : local_addresses()) {
        text += (text.empty() ? "" : ", ") + text_of(local.address) + " (" + local.interface + ")";
    }
    return text;
}

asio::ip::address of_name(const std::string& name) {
    boost::system::error_code error;
    const asio::ip::address literal = asio::ip::make_address(name, error);
    if (!error) return literal;
    addrinfo* found = nullptr;
    const int failure = ::getaddrinfo(name.c_str(), nullptr, nullptr, &found);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, [](addrinfo* list) {
        if (list != nullptr) ::freeaddrinfo(list);
    });
    for (const addrinfo* one = found; failure == 0 && one != nullptr; one = one->ai_next) {
        const auto address = address_of(one->ai_addr);
        if (address && is_local(*address)) return *address;
    }
    throw NoSuchAddress("--local-addr: '" + name + "' is no address of this node; it has " +
                        known_addresses());
}

// IPv4 before IPv6, addresses that the others can use before those of one link.
auto usefulness(const asio::ip::address& address) {
    const bool link_local = address.is_v6() && address.to_v6().is_link_local();
    return std::pair(link_local, address.is_v6());
}

}  // namespace

std::vector<LocalAddress> local_addresses() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(list, ::freeifaddrs);
    std::vector<LocalAddress> found;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        const auto address = address_of(one->ifa_addr);
        const bool up = (one->ifa_flags & IFF_UP) != 0 && !is_dummy(*one);
        if (address && up) found.push_back({one->ifa_name, *address});
    }
    return found;
}

bool is_local(const asio::ip::address& address) {
    if (address.is_loopback()) return true;
    const auto all = local_addresses();
    return std::any_of(all.begin(), all.end(), [&](const LocalAddress& local) {
        return text_of(local.address) == text_of(address);
    });
}

std::optional<asio::ip::address> choose_local_address(const std::optional<std::string>& local_addr,
                                                      const std::optional<std::string>& interface) {
    if (local_addr) {
        const asio::ip::address address = of_name(*local_addr);
        if (is_local(address)) return address;
        throw NoSuchAddress("--local-addr: this node has no address " + *local_addr + "; it has " +
                            known_addresses());
    }
    if (!interface) return std::nullopt;
    std::optional<asio::ip::address> best;
    for (const LocalAddress& local : local_addresses()) {
        if (local.interface != *interface) continue;
        if (!best || usefulness(local.address) < usefulness(*best)) best = local.address;
    }
    if (best) return best;
    throw NoSuchAddress("--interface: this node has no address on '" + *interface + "'; it has " +
                        known_addresses());
}

std::string text_of(const asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
        return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
    }
    return address.to_string();
}

std::string text_of(const tcp::endpoint& endpoint) {
    const std::string address = text_of(endpoint.address());
    const bool six = address.find(':') != std::string::npos;
    return (six ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

}  // namespace ddrun::rendezvous
