// PyTorch's store: its bytes, both generations, and what it does with them.
#include "rendezvous/tcpstore/store.hpp"

#include "tests/support/catch.hpp"

#include <cstring>

using namespace ddrun::rendezvous::tcpstore;

namespace {

template <typename Number>
std::string raw(Number value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(std::string_view bytes) {
    return raw(static_cast<std::uint64_t>(bytes.size())) + std::string(bytes);
}
std::string number(std::int64_t value) {
    return raw(value);
}
std::string list(std::initializer_list<std::string_view> texts, std::uint64_t count) {
    std::string bytes = raw(count);
    for (const auto one : texts) bytes += text(one);
    return bytes;
}
std::string op(int code, const std::string& body = {}) {
    return std::string(1, static_cast<char>(code)) + body;
}
const std::string hello = op(0, raw(std::uint32_t{0x3C85F7CE}));

// Clients of one store, fed with bytes.
class Peers {
  public:
    explicit Peers(std::size_t at_once = 1u << 20) : at_once_(at_once) {}

    // What `client` is answered; "closed" once it is.
    std::string send(int client, const std::string& bytes) {
        auto& peer = peers_[static_cast<std::size_t>(client)];
        for (std::size_t at = 0; at < bytes.size() && !peer.closed; at += at_once_) {
            peer.reader.append(std::string_view(bytes).substr(at, at_once_));
            while (const Request* request = peer.reader.next()) {
                const auto outcome = store.handle(static_cast<Store::Client>(client),
                                                  peer.reader.is_legacy(), *request, peer.answer);
                for (const auto woken : outcome.woken) peers_[woken].answer.push_back('\0');
                peer.closed = peer.closed || outcome.close;
            }
            peer.closed = peer.closed || peer.reader.broken();
        }
        return heard(client);
    }
    // What it has been answered since it last looked.
    std::string heard(int client) {
        auto& peer = peers_[static_cast<std::size_t>(client)];
        return peer.closed ? "closed" : std::exchange(peer.answer, {});
    }
    Store store;

  private:
    struct Peer {
        RequestReader reader;
        std::string answer;
        bool closed = false;
    };
    std::size_t at_once_;
    std::vector<Peer> peers_ = std::vector<Peer>(8);
};

const std::string woken(1, '\0');

// Every operation of a modern client with its answer.
void modern_tour(Peers& peers) {
    CHECK(peers.send(0, hello) == "");
    CHECK(peers.send(0, op(13, raw(std::uint32_t{4711}))) == raw(std::uint32_t{4711}));
    CHECK(peers.send(0, op(4, text("init/") + number(1))) == number(1));
    CHECK(peers.send(0, op(1, text("/k") + text("val"))) == "");
    CHECK(peers.send(0, op(3, text("/k"))) == text("val"));
    CHECK(peers.send(0, op(3, text("/absent"))) == text(""));
    CHECK(peers.send(0, op(4, text("/n") + number(5))) == number(5));
    CHECK(peers.send(0, op(4, text("/n") + number(-7))) == number(-2));
    CHECK(peers.send(0, op(3, text("/n"))) == text("-2"));
    CHECK(peers.send(0, op(2, text("/c") + text("x") + text("y"))) == text("x"));
    CHECK(peers.send(0, op(2, text("/c") + text("") + text("y"))) == text("y"));
    CHECK(peers.send(0, op(2, text("/c") + text("z") + text("w"))) == text("y"));
    CHECK(peers.send(0, op(2, text("/c") + text("y") + text("w"))) == text("w"));
    CHECK(peers.send(0, op(5, list({"/k", "/n"}, 2))) == std::string(1, '\0'));
    CHECK(peers.send(0, op(5, list({"/k", "/absent"}, 2))) == std::string(1, '\1'));
    CHECK(peers.send(0, op(6, list({"/k", "/k"}, 2))) == woken);
    CHECK(peers.send(0, op(6, list({}, 0))) == woken);
    CHECK(peers.send(0, op(9, text("/k") + text("ue"))) == "");
    CHECK(peers.send(0, op(10, list({"/k", "/absent"}, 2))) == text("value") + text(""));
    CHECK(peers.send(0, op(11, raw(std::uint64_t{2}) + text("/a") + text("1") + text("/b") +
                                   text("2"))) == "");
    CHECK(peers.send(0, op(7)) == number(6));
    CHECK(peers.send(0, op(8, text("/b"))) == number(1));
    CHECK(peers.send(0, op(8, text("/b"))) == number(0));
    CHECK(peers.send(0, op(12)) == std::string(1, '\1'));
    CHECK(peers.send(0, op(15, text("/q"))) == number(0));
    CHECK(peers.send(0, op(14, text("/q") + text("one"))) == "");
    CHECK(peers.send(0, op(14, text("/q") + text("two"))) == "");
    CHECK(peers.send(0, op(16, text("/q"))) == number(2));
    CHECK(peers.send(0, op(6, list({"/q"}, 1))) == woken);
    CHECK(peers.send(0, op(15, text("/q"))) == number(2) + text("one"));
    CHECK(peers.send(0, op(7)) == number(5));
    const std::string keys = peers.send(0, op(17));
    CHECK(keys.substr(0, 8) == number(5));
    CHECK(keys.size() == 8 + 5 * 8 + std::strlen("init//k/n/c/a"));
    CHECK(peers.send(0, op(18, text("/bar") + number(1))) == woken);
}

}  // namespace

TEST_CASE("every operation of a modern client, in one piece and byte by byte") {
    Peers whole;
    modern_tour(whole);
    Peers byte_by_byte(1);
    modern_tour(byte_by_byte);
}

TEST_CASE("many requests in one segment are answered in order") {
    Peers peers;
    std::string bytes = hello;
    std::string answers;
    for (int i = 1; i <= 1000; ++i) {
        bytes += op(4, text("/n") + number(1));
        answers += number(i);
    }
    CHECK(peers.send(0, bytes) == answers);
}

TEST_CASE("an older client has other numbers and no handshake") {
    Peers peers;
    CHECK(peers.send(0, op(3, text("init/") + number(1))) == number(1));
    CHECK(peers.send(0, op(0, text("/k") + text("v"))) == "");
    CHECK(peers.send(0, op(2, text("/k"))) == text("v"));
    CHECK(peers.send(0, op(1, text("/k") + text("v") + text("w"))) == text("w"));
    CHECK(peers.send(0, op(4, list({"/k"}, 1))) == std::string(1, '\0'));
    CHECK(peers.send(0, op(6)) == number(2));
    CHECK(peers.send(0, op(8, text("/k"))) == number(1));
    CHECK(peers.send(1, op(7, text("/k"))) == "\3");
    // Beginning with a "set", as one byte that might be a handshake.
    CHECK(peers.send(2, op(0, text("/z") + text("1"))) == "");
    CHECK(peers.send(2, op(2, text("/z"))) == text("1"));
}

TEST_CASE("a wait ends when all its keys have been written, each at any time since") {
    Peers peers;
    for (int client : {0, 1, 2}) (void)peers.send(client, hello);
    CHECK(peers.send(0, op(6, list({"/a", "/b", "/a"}, 3))) == "");
    CHECK(peers.send(1, op(6, list({"/b"}, 1))) == "");
    (void)peers.send(2, op(1, text("/a") + text("")));
    (void)peers.send(2, op(8, text("/a")));  // deleted again: it counts
    CHECK(peers.heard(0) == "");
    (void)peers.send(2, op(4, text("/b") + number(0)));
    CHECK(peers.heard(0) == woken);
    CHECK(peers.heard(1) == woken);
    (void)peers.send(2, op(1, text("/b") + text("again")));
    CHECK(peers.heard(0) == "");
}

TEST_CASE("a cancelled wait is not woken, nor is one that an older client gave up silently") {
    Peers peers;
    for (int client : {0, 2}) (void)peers.send(client, hello);
    (void)peers.send(0, op(6, list({"/a"}, 1)));
    CHECK(peers.send(0, op(12)) == std::string(1, '\1'));
    CHECK(peers.send(1, op(5, list({"/a"}, 1))) == "");
    CHECK(peers.send(1, op(3, text("/n") + number(0))) == number(0));
    (void)peers.send(2, op(1, text("/a") + text("")));
    CHECK(peers.heard(0) == "");
    CHECK(peers.heard(1) == "");
}

TEST_CASE("a barrier lets all pass when the last comes, and whoever comes later") {
    Peers peers;
    for (int client : {0, 1, 2, 3}) (void)peers.send(client, hello);
    const auto barrier = op(18, text("/bar") + number(3));
    CHECK(peers.send(0, barrier) == "");
    CHECK(peers.send(1, barrier) == "");
    CHECK(peers.send(2, barrier) == woken);
    CHECK(peers.heard(0) == woken);
    CHECK(peers.heard(1) == woken);
    CHECK(peers.send(3, barrier) == woken);
    CHECK(peers.send(3, op(3, text("/bar"))) == text("4"));
}

TEST_CASE("a queue wakes one of those who wait, the first") {
    Peers peers;
    for (int client : {0, 1, 2}) (void)peers.send(client, hello);
    (void)peers.send(0, op(6, list({"/q"}, 1)));
    (void)peers.send(1, op(6, list({"/q"}, 1)));
    (void)peers.send(2, op(14, text("/q") + text("x")));
    CHECK(peers.heard(0) == woken);
    CHECK(peers.heard(1) == "");
    peers.store.forget(1);
    (void)peers.send(2, op(14, text("/q") + text("y")));
    CHECK(peers.heard(1) == "");
    CHECK(peers.store.keys() == 0);
}

TEST_CASE("what is no store client, or asks for too much, is closed") {
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\n\r\n"), op(0, raw(std::uint32_t{1})) + "xxxxxxxxxx",
          hello + hello, hello + op(19), hello + op(99), op(12), op(200),
          hello + op(3, raw(std::uint64_t{9000}) + std::string(9000, 'k')),
          hello + op(1, text("/k") + raw(std::uint64_t{65u << 20})),
          hello + op(6, raw(std::uint64_t{200'000})),
          hello + op(1, text("/t") + text("abc")) + op(4, text("/t") + number(1)),
          hello + op(4, text("/t") + number(INT64_MAX)) + op(4, text("/t") + number(1))}) {
        Peers peers;
        const std::string answer = peers.send(0, bytes);
        CAPTURE(bytes.substr(0, 20));
        const bool closed = answer == "closed" || bytes == op(12);
        CHECK(closed);
    }
}

TEST_CASE("a value of 8 MiB and 131,072 keys are within the limits") {
    Peers peers(64u << 10);
    const std::string value(8u << 20, 'v');
    (void)peers.send(0, hello + op(1, text("/large") + text(value)));
    CHECK(peers.send(0, op(3, text("/large"))) == text(value));
    std::string bytes = op(5, raw(std::uint64_t{131'072}));
    for (int i = 0; i < 131'072; ++i) bytes += text("/large");
    CHECK(peers.send(0, bytes) == std::string(1, '\0'));
}
