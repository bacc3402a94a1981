#include "worker_sdk/src/cpu/mesh.hpp"

#include "worker_sdk/src/failure.hpp"

#include <ddrun/error.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace ddrun::detail {
namespace {

constexpr std::uint64_t magic = 0x6873656d6e726464;  // "ddrnmesh"
constexpr Duration hello_patience = std::chrono::seconds(2);
constexpr std::size_t most_callers = 256;
constexpr int any_port = 9;  // for a look at the route only: nothing is sent

struct Address {
    sockaddr_storage bytes{};
    socklen_t length = 0;
    [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

[[noreturn]] void system_error(const std::string& what) {
    throw Error(ErrorKind::system, what + ": " + std::strerror(errno));
}

Address resolve(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int result = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (result != 0)
        throw Error(ErrorKind::environment, "MASTER_ADDR=" + host + " has no address (" +
                                                ::gai_strerror(result) +
                                                "): the ranks of other nodes cannot be reached");
    Address address;
    address.length = found->ai_addrlen;
    std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
    return address;
}

// This machine's own address on the way to `peer`.
Address local_address_towards(const Address& peer) {
    const UniqueFd probe(::socket(peer.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    Address own;
    own.length = sizeof own.bytes;
    if (!probe || ::connect(probe.get(), peer.get(), peer.length) != 0 ||
        ::getsockname(probe.get(), own.get(), &own.length) != 0)
        system_error("no way to the master's address");
    return own;
}

void set_port(Address& address, std::uint16_t port) {
    if (address.get()->sa_family == AF_INET6)
        reinterpret_cast<sockaddr_in6*>(address.get())->sin6_port = htons(port);
    else
        reinterpret_cast<sockaddr_in*>(address.get())->sin_port = htons(port);
}

std::string raw(const Address& address) {
    return {reinterpret_cast<const char*>(&address.bytes), address.length};
}

std::string random_key(std::size_t bytes) {
    std::string key(bytes, '\0');
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(bytes))
        system_error("no random bytes");
    return key;
}

template <typename T>
void put(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string store_key(int rank) {
    return "ddrun.mesh/" + std::to_string(rank);
}

void no_delay(int socket) {
    const int on = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

constexpr const char* no_connection = "no connection in time";

// False: not within a glance.
bool wait_for(int socket, short events, const Patience& patience) {
    pollfd one{socket, events, 0};
    return ::poll(&one, 1, patience.glance()) > 0;
}

}  // namespace

Mesh::Mesh(Store& store, int rank, const std::string& master_addr)
    : store_(store), rank_(rank), key_(random_key(key_bytes)) {
    listen_towards(master_addr);
    store_.set(store_key(rank_), published_);
}

void Mesh::listen_towards(const std::string& master_addr) {
    Address own = local_address_towards(resolve(master_addr, any_port));
    set_port(own, 0);
    listener_ =
        UniqueFd(::socket(own.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_ || ::bind(listener_.get(), own.get(), own.length) != 0 ||
        ::listen(listener_.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener_.get(), own.get(), &own.length) != 0)
        system_error("this rank cannot listen for the others");
    published_ = key_ + raw(own);
}

UniqueFd Mesh::connect(int rank, std::uint64_t purpose, const Patience& patience) {
    const std::string published = address_of(rank, patience);
    Address address;
    address.length = static_cast<socklen_t>(published.size() - key_bytes);
    std::memcpy(&address.bytes, published.data() + key_bytes, address.length);
    UniqueFd socket(
        ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) system_error("no socket for rank " + std::to_string(rank));
    if (::connect(socket.get(), address.get(), address.length) != 0 && errno != EINPROGRESS)
        throw WireTrouble(WireTrouble::Kind::closed, rank, std::strerror(errno));
    while (!wait_for(socket.get(), POLLOUT, patience)) patience.check(rank, no_connection);
    int error = 0;
    socklen_t length = sizeof error;
    (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) throw WireTrouble(WireTrouble::Kind::closed, rank, std::strerror(error));
    no_delay(socket.get());
    std::string hello;
    put(hello, magic);
    put(hello, static_cast<std::int64_t>(rank_));
    put(hello, purpose);
    hello += published.substr(0, key_bytes);
    static_assert(3 * sizeof(std::uint64_t) + key_bytes == hello_bytes);
    if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(hello.size()))
        throw WireTrouble(WireTrouble::Kind::closed, rank, std::strerror(errno));
    return socket;
}

std::string Mesh::address_of(int rank, const Patience& patience) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = addresses_.find(rank); known != addresses_.end())
            return known->second;
    }
    const auto left =
        std::chrono::ceil<Store::Timeout>(patience.deadline - std::chrono::steady_clock::now());
    auto published = store_.async_get(store_key(rank), std::max(left, Store::Timeout(1)));
    while (!published.is_ready()) {
        patience.check(rank, no_connection);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const std::string bytes = published.get();
    if (bytes.size() <= key_bytes || bytes.size() > key_bytes + sizeof(sockaddr_storage))
        throw_foreign_value(store_key(rank));
    const std::lock_guard lock(mutex_);
    return addresses_[rank] = bytes;
}

UniqueFd Mesh::accept(int rank, std::uint64_t purpose, const Patience& patience) {
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = waiting_.find({rank, purpose}); found != waiting_.end()) {
                UniqueFd socket = std::move(found->second.front());
                found->second.erase(found->second.begin());
                if (found->second.empty()) waiting_.erase(found);
                return socket;
            }
            take_callers(patience);
        }
        patience.check(rank, no_connection);
    }
}

void Mesh::take_callers(const Patience& patience) {
    std::vector<pollfd> fds = {{listener_.get(), POLLIN, 0}};
    for (const auto& caller : callers_) fds.push_back({caller.socket.get(), POLLIN, 0});
    (void)::poll(fds.data(), fds.size(), patience.glance());
    const TimePoint now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < callers_.size(); ++i)
        if (fds[i + 1].revents != 0) hear(callers_[i]);
    std::erase_if(callers_,
                  [&](const Caller& caller) { return !caller.socket || caller.deadline <= now; });
    if ((fds.front().revents & POLLIN) == 0) return;
    for (;;) {
        UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) return;
        if (callers_.size() == most_callers) callers_.erase(callers_.begin());
        callers_.push_back({std::move(socket), {}, 0, now + hello_patience});
        hear(callers_.back());
        if (!callers_.back().socket) callers_.pop_back();
    }
}

// Closed or admitted, its socket is gone from the list.
void Mesh::hear(Caller& caller) {
    const ssize_t got = ::recv(caller.socket.get(), caller.hello.data() + caller.heard,
                               hello_bytes - caller.heard, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return caller.socket.reset();
    caller.heard += static_cast<std::size_t>(got);
    if (caller.heard == hello_bytes) admit(caller);
}

void Mesh::admit(Caller& caller) {
    std::uint64_t said = 0;
    std::int64_t rank = 0;
    std::uint64_t purpose = 0;
    std::memcpy(&said, caller.hello.data(), sizeof said);
    std::memcpy(&rank, caller.hello.data() + 8, sizeof rank);
    std::memcpy(&purpose, caller.hello.data() + 16, sizeof purpose);
    const std::string_view shown(caller.hello.data() + 24, key_bytes);
    if (said != magic || shown != key_) return caller.socket.reset();
    no_delay(caller.socket.get());
    waiting_[{static_cast<int>(rank), purpose}].push_back(std::move(caller.socket));
}

}  // namespace ddrun::detail
