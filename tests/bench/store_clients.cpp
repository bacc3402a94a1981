#include "tests/bench/store_clients.hpp"

#include "rendezvous/protocol/codec.hpp"
#include "tests/bench/measure.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <fstream>
#include <stdexcept>

namespace ddrun::bench {
namespace {

constexpr auto key = "some/ordinary/key";

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
}

// Little-endian, as both protocols have it.
template <typename T>
void put(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class DdrunWire final : public Wire {
  public:
    std::string request(Operation operation, std::uint64_t id) override {
        if (operation == Operation::add)
            return rendezvous::encode(rendezvous::FromWorker(rendezvous::StoreAdd{id, key, 1}));
        return rendezvous::encode(rendezvous::FromWorker(rendezvous::StoreGet{id, key, 1000}));
    }
    std::size_t reply_size(std::string_view bytes, Operation) override {
        std::uint32_t length = 0;
        if (bytes.size() < sizeof length) return 0;
        std::memcpy(&length, bytes.data(), sizeof length);
        return bytes.size() < sizeof length + length ? 0 : sizeof length + length;
    }
};

// c10d's store as PyTorch 1.13 numbers its requests: SET, COMPARE_SET, GET, ADD ...
class TorchWire final : public Wire {
  public:
    std::string request(Operation operation, std::uint64_t) override {
        constexpr char get = 2;
        constexpr char add = 3;
        std::string bytes(1, operation == Operation::add ? add : get);
        put(bytes, std::uint64_t{std::strlen(key)});
        bytes += key;
        if (operation == Operation::add) put(bytes, std::int64_t{1});
        return bytes;
    }
    std::size_t reply_size(std::string_view bytes, Operation operation) override {
        constexpr std::size_t word = sizeof(std::uint64_t);
        if (bytes.size() < word) return 0;
        if (operation == Operation::add) return word;
        std::uint64_t length = 0;
        std::memcpy(&length, bytes.data(), word);
        return bytes.size() < word + length ? 0 : word + length;
    }
};

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
}

// One connection that is kept busy.
class Lane {
  public:
    Lane(int socket, Wire& wire, const Load& load) : socket_(socket), wire_(wire), load_(load) {}

    void send_more(std::uint64_t now) {
        while (static_cast<int>(sent_at_.size()) < load_.depth) {
            unsent_ += wire_.request(load_.operation, ++last_id_);
            sent_at_.push_back(now);
        }
        const ssize_t sent = ::send(socket_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
        if (sent < 0) fail("send to the store");
        if (static_cast<std::size_t>(sent) < unsent_.size()) fail("the socket took only a part");
        unsent_.clear();
    }
    void receive(std::uint64_t now, std::vector<std::uint32_t>& took) {
        char bytes[65536];
        const ssize_t got = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got <= 0) fail("the store closed a connection");
        unread_.append(bytes, static_cast<std::size_t>(got));
        std::string_view rest = unread_;
        while (const std::size_t size = wire_.reply_size(rest, load_.operation)) {
            rest.remove_prefix(size);
            took.push_back(static_cast<std::uint32_t>(now - sent_at_.front()));
            sent_at_.pop_front();
        }
        unread_.erase(0, unread_.size() - rest.size());
    }
    [[nodiscard]] bool idle() const { return sent_at_.empty(); }

  private:
    int socket_;
    Wire& wire_;
    const Load& load_;
    std::uint64_t last_id_ = 0;
    std::deque<std::uint64_t> sent_at_;
    std::string unsent_;
    std::string unread_;
};

class Epoll {
  public:
    explicit Epoll(const std::vector<int>& sockets) {
        for (std::size_t i = 0; i < sockets.size(); ++i) {
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = i;
            if (::epoll_ctl(fd_, EPOLL_CTL_ADD, sockets[i], &event) != 0) fail("epoll_ctl");
        }
    }
    ~Epoll() { ::close(fd_); }
    Epoll(const Epoll&) = delete;
    Epoll& operator=(const Epoll&) = delete;

    // Indices of those that have something to read.
    void wait(std::vector<std::size_t>& ready) {
        epoll_event events[256];
        const int count = ::epoll_wait(fd_, events, 256, 20'000);
        if (count <= 0) fail("no reply from the store");
        ready.clear();
        for (int i = 0; i < count; ++i) ready.push_back(events[i].data.u64);
    }

  private:
    int fd_ = ::epoll_create1(EPOLL_CLOEXEC);
};

int connected(int socket, const sockaddr* address, socklen_t size) {
    while (::connect(socket, address, size) != 0) {
        if (errno != EAGAIN && errno != EINTR) fail("connect");
        ::usleep(1000);  // a full backlog of a unix socket
    }
    return socket;
}

}  // namespace

std::unique_ptr<Wire> ddrun_wire() {
    return std::make_unique<DdrunWire>();
}
std::unique_ptr<Wire> torch_wire() {
    return std::make_unique<TorchWire>();
}

double cpu_seconds(int pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto after_name = text.rfind(')');
    if (after_name == std::string::npos) return 0;
    long user = 0, system = 0;
    std::sscanf(text.c_str() + after_name + 1,
                " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
    return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void put_percentiles(std::vector<std::uint32_t>& nanoseconds, Outcome& outcome) {
    if (nanoseconds.empty()) return;
    std::sort(nanoseconds.begin(), nanoseconds.end());
    outcome.p50_us = nanoseconds[nanoseconds.size() / 2] * 1e-3;
    outcome.p99_us = nanoseconds[nanoseconds.size() * 99 / 100] * 1e-3;
}

Outcome drive(const std::vector<int>& sockets, Wire& wire, const Load& load, int server_pid) {
    std::vector<Lane> lanes;
    for (const int socket : sockets) lanes.emplace_back(socket, wire, load);
    Epoll epoll(sockets);
    std::vector<std::uint32_t> took;
    std::vector<std::size_t> ready;
    const double cpu = cpu_seconds(server_pid);
    const auto begin = Clock::now();
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(load.seconds * 1e9);
    for (Lane& lane : lanes) lane.send_more(now_ns());
    for (std::size_t busy = lanes.size(); busy > 0;) {
        epoll.wait(ready);
        const std::uint64_t now = now_ns();
        for (const std::size_t i : ready) {
            lanes[i].receive(now, took);
            if (now < end)
                lanes[i].send_more(now);
            else if (lanes[i].idle())
                --busy;
        }
    }
    const double wall = seconds_since(begin);
    const auto operations = static_cast<double>(took.size());
    Outcome outcome;
    outcome.operations_per_second = operations / wall;
    outcome.server_us_per_operation = (cpu_seconds(server_pid) - cpu) * 1e6 / operations;
    put_percentiles(took, outcome);
    return outcome;
}

std::vector<int> connect_tcp(int port, int count) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    std::vector<int> sockets;
    const int one = 1;
    for (int i = 0; i < count; ++i) {
        sockets.push_back(connected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                    reinterpret_cast<const sockaddr*>(&address), sizeof address));
        ::setsockopt(sockets.back(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return sockets;
}

std::vector<int> connect_agent(const std::string& name, int round, int count) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    std::vector<int> sockets;
    for (int rank = 0; rank < count; ++rank) {
        sockets.push_back(connected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                    reinterpret_cast<const sockaddr*>(&address), size));
        send_all(sockets.back(), rendezvous::encode(rendezvous::FromWorker(rendezvous::WorkerHello{
                                     rendezvous::worker_protocol_version, round, rank})));
    }
    DdrunWire wire;
    await_replies(sockets,
                  [&](std::string_view bytes) { return wire.reply_size(bytes, Operation::add); });
    return sockets;
}

void close_all(const std::vector<int>& sockets) {
    for (const int socket : sockets) ::close(socket);
}

void send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) fail("send to the store");
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void await_replies(const std::vector<int>& sockets,
                   const std::function<std::size_t(std::string_view)>& reply_size) {
    Epoll epoll(sockets);
    std::vector<std::string> unread(sockets.size());
    std::vector<std::size_t> ready;
    for (std::size_t missing = sockets.size(); missing > 0;) {
        epoll.wait(ready);
        for (const std::size_t i : ready) {
            char bytes[65536];
            const ssize_t got = ::recv(sockets[i], bytes, sizeof bytes, MSG_DONTWAIT);
            if (got <= 0) fail("the store closed a connection");
            unread[i].append(bytes, static_cast<std::size_t>(got));
            if (reply_size(unread[i]) == 0) continue;
            unread[i].clear();
            --missing;
        }
    }
}

}  // namespace ddrun::bench
