// PyTorch's store on real sockets, with clients that are only bytes.
#include "rendezvous/server/store_front.hpp"

#include "tests/support/catch.hpp"

#include <boost/asio/io_context.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

using namespace ddrun::rendezvous;
using namespace std::chrono_literals;
using boost::asio::ip::tcp;

namespace {

template <typename Number>
std::string raw(Number value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(const std::string& bytes) {
    return raw(static_cast<std::uint64_t>(bytes.size())) + bytes;
}
const std::string hello = std::string(1, '\0') + raw(std::uint32_t{0x3C85F7CE});
std::string get(const std::string& key) {
    return "\3" + text(key);
}
std::string set(const std::string& key, const std::string& value) {
    return "\1" + text(key) + text(value);
}

// The front in this thread: it works while somebody waits in here.
class Stage {
  public:
    boost::asio::io_context io;
    StoreFront front{io, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)};

    [[nodiscard]] tcp::socket connect() {
        tcp::socket socket(io);
        socket.connect(front.endpoint());
        socket.non_blocking(true);
        return socket;
    }
    void work(std::chrono::milliseconds time = 0ms) {
        if (time > 0ms)
            io.run_for(time);
        else
            while (io.poll() > 0) {
            }
        io.restart();
    }
    // Exactly so many bytes; shorter: the front has closed, or nothing came in time.
    std::string receive(tcp::socket& socket, std::size_t count, std::chrono::seconds limit = 5s) {
        std::string bytes;
        const auto end = std::chrono::steady_clock::now() + limit;
        while (bytes.size() < count && std::chrono::steady_clock::now() < end) {
            io.poll();
            io.restart();
            char part[65536];
            const ssize_t got = ::recv(socket.native_handle(), part,
                                       std::min(sizeof part, count - bytes.size()), MSG_DONTWAIT);
            if (got == 0) break;
            if (got > 0) bytes.append(part, static_cast<std::size_t>(got));
        }
        return bytes;
    }
    void send(tcp::socket& socket, const std::string& bytes) {
        for (std::size_t sent = 0; sent < bytes.size();) {
            const ssize_t some = ::send(socket.native_handle(), bytes.data() + sent,
                                        bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (some > 0) sent += static_cast<std::size_t>(some);
            if (some < 0 && errno != EAGAIN) return;
            work();
        }
    }
    bool is_closed(tcp::socket& socket) {
        const auto end = std::chrono::steady_clock::now() + 1s;
        while (std::chrono::steady_clock::now() < end) {
            work();
            char byte = 0;
            const ssize_t got = ::recv(socket.native_handle(), &byte, 1, MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
        }
        return false;
    }
};

}  // namespace

TEST_CASE("clients share keys, and one that waits is woken by another") {
    Stage stage;
    auto one = stage.connect();
    auto other = stage.connect();
    stage.send(one, hello + "\6" + raw(std::uint64_t{1}) + text("/id"));
    CHECK(stage.receive(one, 1, 1s).empty());
    stage.send(other, hello + set("/id", "128 bytes"));
    CHECK(stage.receive(one, 1) == std::string(1, '\0'));
    stage.send(one, get("/id"));
    CHECK(stage.receive(one, 17) == text("128 bytes"));
}

TEST_CASE("a new round begins empty, and clients of the old one are cut off") {
    Stage stage;
    auto old = stage.connect();
    stage.send(old, hello + set("/id", "old"));
    stage.front.start_over();
    CHECK(stage.is_closed(old));
    auto fresh = stage.connect();
    stage.send(fresh, hello + get("/id"));
    CHECK(stage.receive(fresh, 8) == text(""));
}

TEST_CASE("what is no store client is closed within a second, and others do not notice") {
    Stage stage;
    auto good = stage.connect();
    stage.send(good, hello + set("/id", "x"));
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), hello + "\x7f",
          hello + get(std::string(9000, 'k')), std::string(64, '\xff')}) {
        auto bad = stage.connect();
        stage.send(bad, bytes);
        CHECK(stage.is_closed(bad));
    }
    auto half = stage.connect();  // silent in the middle of a request
    stage.send(half, hello.substr(0, 3));
    auto gone = stage.connect();  // resets while it waits
    stage.send(gone, hello + "\6" + raw(std::uint64_t{1}) + text("/never"));
    gone.set_option(boost::asio::socket_base::linger(true, 0));
    gone.close();
    stage.send(good, set("/never", "") + get("/id"));
    CHECK(stage.receive(good, 9) == text("x"));
    CHECK(stage.front.connections() == 2);
}

TEST_CASE("a client that does not read its answers holds up nobody and costs little") {
    Stage stage;
    auto deaf = stage.connect();
    stage.send(deaf, hello + set("/v", std::string(1u << 20, 'v')));
    for (int i = 0; i < 64; ++i) stage.send(deaf, get("/v"));  // 64 MiB of answers
    auto good = stage.connect();
    stage.send(good, hello + set("/id", "x") + get("/id"));
    CHECK(stage.receive(good, 9) == text("x"));
    std::size_t heard = 0;
    while (heard < 64 * ((1u << 20) + 8)) {
        const auto part = stage.receive(deaf, 1u << 20);
        if (part.empty()) break;
        heard += part.size();
    }
    CHECK(heard == 64 * ((1u << 20) + 8));
}

TEST_CASE("a barrier of 2,000 connections") {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    Stage stage;
    std::vector<tcp::socket> clients;
    for (int i = 0; i < 2000; ++i) {
        clients.push_back(stage.connect());
        if (i % 50 == 0) stage.work();
    }
    const auto begin = std::chrono::steady_clock::now();
    for (auto& client : clients)
        stage.send(client, hello + "\x12" + text("/bar") + raw(std::int64_t{2000}));
    std::size_t passed = 0;
    for (auto& client : clients) passed += stage.receive(client, 1).size();
    CHECK(passed == 2000);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    INFO(took.count() << " ms");
    CHECK(took < 10s);
}
