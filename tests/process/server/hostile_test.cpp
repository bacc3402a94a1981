// Who does not belong here, and who belongs here and behaves badly.
#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/preface.hpp"
#include "rendezvous/transport/secret.hpp"
#include "tests/process/server/peers.hpp"
#include "tests/support/catch.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <memory>
#include <random>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;

namespace {

double cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string random_bytes(std::size_t size, std::mt19937& random) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
}

// What comes to an open port.
std::vector<std::string> garbage(std::mt19937& random) {
    const std::string hello = bytes_of(hello_of(7));
    const std::string magic = preface(PrefaceKind::node);
    return {
        "GET / HTTP/1.0\r\n\r\n",
        random_bytes(1 << 20, random),
        std::string("\x16\x03\x01\x00\xfa\x01\x00\x00\xf6\x03\x03", 11) + random_bytes(250, random),
        std::string(8, '\xff'),
        magic + std::string(8, '\xff'),
        magic + std::string(8, '\0'),
        magic + random_bytes(40'000, random),
        magic + encode(FromNode(Heartbeat{1, 0})),
        magic.substr(0, 7) + "x",
        preface(PrefaceKind::obituary) + encode(FromNode(Obituary{"job", "guess"})),
        preface(PrefaceKind::munge) + random_bytes(100, random),
        hello.substr(0, hello.size() / 2),
    };
}

}  // namespace

TEST_CASE("PORT-5: a thousand connections with garbage change nothing and cost nothing") {
    TestServer server([](auto& settings) { settings.hello_timeout = 1s; });
    RawClient member(server.port);
    member.greet(hello_of(0));
    REQUIRE(server.await([&] { return member.heard<NodeWelcome>() != nullptr; }));
    std::mt19937 random(20231);
    const std::vector<std::string> kinds = garbage(random);
    const auto flood = [&](std::size_t count) {
        std::deque<std::unique_ptr<RawClient>> open;
        for (std::size_t i = 0; i < count; ++i) {
            open.push_back(std::make_unique<RawClient>(server.port, kinds[i % kinds.size()]));
            server.pass(1ms);
            if (i % 3 == 0) open.back()->reset();
            if (open.size() > 100) open.pop_front();
        }
        open.clear();
        CHECK(server.await([&] { return server.server.status().strangers == 0; }));
    };
    flood(100);  // what the allocator keeps anyway
    const long before = resident_kib();
    flood(1000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep freed memory
    CHECK(resident_kib() - before < 10 * 1024);
#else
    (void)before;
#endif

    const ServerStatus status = server.server.status();
    CHECK(status.jobs.size() == 1);
    CHECK(status.connections == 1);
    CHECK(status.turned_away > 800);
    member.say(Heartbeat{1, 0});
    CHECK(server.await([&] { return member.heard<HeartbeatSeen>() != nullptr; }));
    server.pass(1500ms);
    INFO(server.all_said());
    CHECK(server.said.size() <= 3);
    CHECK(server.has_said("malformed connections from 127.0.0.1"));
}

TEST_CASE("PORT-5: each kind of garbage is closed within a second") {
    TestServer server;
    std::mt19937 random(7);
    for (const std::string& bytes : garbage(random)) {
        if (bytes.size() < 2000 && bytes.rfind(preface(PrefaceKind::node), 0) == 0 &&
            bytes.size() > 100)
            continue;  // half a hello: may still become one
        const auto begin = ddrun::detail::now();
        RawClient peer(server.port, bytes);
        CHECK(server.await([&] { return peer.closed(); }));
        CHECK(ddrun::detail::now() - begin < 1s);
        CHECK(peer.messages().empty());
    }
}

TEST_CASE("who says nothing, or half a hello and no more, or one byte at a time, is closed") {
    TestServer server([](auto& settings) {
        settings.silence_timeout = 100ms;
        settings.hello_timeout = 600ms;
    });
    const std::string whole = bytes_of(hello_of(0));
    RawClient silent(server.port), half(server.port, whole.substr(0, whole.size() / 2)),
        half_preface(server.port, whole.substr(0, 3)), slow(server.port);
    const auto begin = ddrun::detail::now();
    CHECK(server.await([&] { return silent.closed(); }));
    CHECK(ddrun::detail::now() - begin < 600ms);
    std::size_t sent = 0;
    CHECK(server.await([&] {
        if (sent < whole.size() - 1) slow.send(whole.substr(sent++, 1));
        server.pass(20ms);
        return half.closed() && half_preface.closed();
    }));
    RawClient trickle(server.port);
    sent = 0;
    CHECK(server.await([&] {
        trickle.send(whole.substr(sent++, 1));
        server.pass(50ms);
        return trickle.closed();
    }));
    CHECK(sent < whole.size());
    CHECK(ddrun::detail::now() - begin < 5s);
    CHECK(server.server.status().jobs.empty());
    CHECK(server.server.status().strangers == 0);
}

TEST_CASE("when too many strangers stand at the door, a node still gets in") {
    TestServer server([](auto& settings) {
        settings.most_strangers = 4;
        settings.silence_timeout = 100ms;
    });
    std::vector<std::unique_ptr<RawClient>> silent;
    for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<RawClient>(server.port));
    RawClient node(server.port);
    node.greet(hello_of(0, 1));
    std::size_t most = 0;
    CHECK(server.await([&] {
        most = std::max(most, server.server.status().strangers);
        return node.told<RoundGranted>() != nullptr;
    }));
    CHECK(most <= 4);
}

TEST_CASE("unfinished hellos share a bounded memory") {
    TestServer server;
    const std::string head = preface(PrefaceKind::node) + std::string("\xff\x7f\0\0\x80", 5);
    std::vector<std::unique_ptr<RawClient>> half;
    for (int i = 0; i < 400; ++i) {
        half.push_back(std::make_unique<RawClient>(server.port, head + std::string(30'000, 'x')));
        server.pass(1ms);
    }
    server.pass(100ms);
    CHECK(server.server.status().strangers < 150);  // 4 MiB of 30,000 bytes each
    RawClient node(server.port);
    node.greet(hello_of(0, 1));
    CHECK(server.await([&] { return node.told<RoundGranted>() != nullptr; }));
}

TEST_CASE("replayed frames of another incarnation change nothing") {
    TestServer server;
    RawClient first(server.port), second(server.port);
    first.greet(hello_of(0));
    second.greet(hello_of(1));
    REQUIRE(
        server.await([&] { return first.told<RoundGranted>() && second.told<RoundGranted>(); }));
    NodeHello old = hello_of(1);
    old.node_incarnation = std::string(32, 'e');
    old.job_incarnation = std::string(32, 'f');
    old.standing.grant = {3, 2, 1, 2, 1, 2, "10.9.0.1", 40000, 5};
    RawClient replay(server.port,
                     bytes_of(old) +
                         encode(FromNode(FromNodePayload{1, 0, ToCoordinator(NodeDone{1})})) +
                         encode(FromNode(Goodbye{})));
    REQUIRE(server.await([&] { return replay.closed(); }));
    REQUIRE(replay.heard<NodeRefused>() != nullptr);
    CHECK(replay.heard<NodeRefused>()->exit_code == 75);
    CHECK_FALSE(replay.heard<NodeRefused>()->words.empty());
    for (RawClient* node : {&first, &second}) {
        node->say(Heartbeat{1, 1});
        REQUIRE(server.await([&] { return node->heard<HeartbeatSeen>() != nullptr; }));
        CHECK(node->heard<HeartbeatSeen>()->round == 1);
        CHECK(node->told<StopRound>() == nullptr);
        CHECK(node->told<Verdict>() == nullptr);
    }
}

TEST_CASE("a node that breaks the protocol after its hello is dropped") {
    TestServer server;
    std::string bad;
    SECTION("a second hello") {
        bad = encode(FromNode(hello_of(0)));
    }
    SECTION("a message that does not exist") {
        bad = std::string("\1\0\0\0\x07", 5);
    }
    SECTION("a length beyond all limits") {
        bad = std::string("\xff\xff\xff\xff", 4);
    }
    RawClient node(server.port, bytes_of(hello_of(0)) + bad);
    CHECK(server.await([&] { return node.closed(); }));
    CHECK(server.await([&] { return server.has_said("no message of this protocol"); }));
    CHECK(server.server.status().strangers == 0);
}

TEST_CASE("a node that takes nothing is dropped in words") {
    TestServer server([](auto& settings) {
        settings.unsent_to_drop = std::size_t{8} << 20;
        settings.unsent_to_pause = std::size_t{64} << 20;
    });
    RawClient node(server.port);
    node.greet(hello_of(0, 1));
    REQUIRE(server.await([&] { return node.told<RoundGranted>() != nullptr; }));
    std::uint64_t sequence = 0;
    const auto ask = [&](FromWorker request) {
        node.say(FromNodePayload{++sequence, 0, StoreAsked{1, 0, std::move(request)}});
    };
    ask(StoreSet{1, "k", std::string(60'000, 'v')});
    for (std::uint64_t id = 2; id < 400; ++id) ask(StoreGet{id, "k", 0});
    CHECK(server.await([&] { return server.has_said("has not taken"); }));
    INFO(server.all_said());
    CHECK(server.has_said("127.0.0.1"));
}

TEST_CASE("out of descriptors: one line, no spinning, and it goes on when there are some") {
    TestServer server;
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<RawClient>(server.port));
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const UniqueFd next_free(::dup(0));
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(next_free.get());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const double cpu = cpu_seconds();
    server.pass(1500ms);
    const double used = cpu_seconds() - cpu;
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(used < 0.5);
    CHECK(server.said.size() == 1);
    CHECK(server.has_said("cannot take more connections for now"));
    RawClient node(server.port);
    node.greet(hello_of(0, 1));
    CHECK(server.await([&] { return node.told<RoundGranted>() != nullptr; }));
}

TEST_CASE("a wrong key is refused in words on both sides") {
    Security of_server;
    of_server.key = key_of("the secret of this job");
    TestServer server([&](auto& settings) { settings.security = of_server; });
    Security of_node;
    std::string refusal;
    SECTION("another key") {
        of_node.key = key_of("quite another secret");
    }
    SECTION("no key") {
        of_node.mode = Security::Mode::plain;
    }
    namespace asio = boost::asio;
    using asio::ip::tcp;
    const tcp::endpoint at(asio::ip::address_v4::loopback(),
                           static_cast<unsigned short>(server.port));
    const auto join = [&]() -> asio::awaitable<void> {
        try {
            tcp::socket socket(server.io);
            co_await socket.async_connect(at, asio::use_awaitable);
            const TimePoint deadline = ddrun::detail::now() + 5s;
            const auto stream = co_await open_stream(std::move(socket), of_node, deadline);
            const std::string hello = encode(FromNode(hello_of(0)));
            co_await stream->write(hello);
            std::array<char, 4096> buffer;
            const std::size_t got = co_await stream->read_some(buffer);
            refusal.assign(buffer.data(), got);
        } catch (const NotAuthorised& words) {
            refusal = words.what();
        }
    };
    asio::co_spawn(server.io, join(), asio::detached);
    CHECK(server.await([&] { return !refusal.empty(); }));
    CHECK(refusal.find("secret") != std::string::npos);
    CHECK(server.await([&] { return server.has_said("refused 1 connection from 127.0.0.1: "); }));
    CHECK(server.has_said("secret"));
    CHECK(server.server.status().jobs.empty());
}
