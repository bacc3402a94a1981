#include "rendezvous/transport/stream.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/protocol/preface.hpp"
#include "tests/process/transport/loopback.hpp"
#include "tests/support/catch.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <string>

// Connections of the rendezvous over real sockets of this machine.
using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;

namespace {

Security secret(char letter) {
    Security security;
    security.key.fill(static_cast<unsigned char>(letter));
    return security;
}

Security insecure() {
    Security security;
    security.mode = Security::Mode::plain;
    return security;
}

constexpr std::string_view eof_words = "End of file";

}  // namespace

TEST_CASE("bytes pass both ways at once, plain and encrypted") {
    for (const Security& security : {insecure(), secret('k')}) {
        Loopback loopback;
        loopback.connect(security, security);
        REQUIRE(loopback.failures() == "");
        const std::string to_server(3'000'000, 'a');
        const std::string to_client(2'000'000, 'b');
        std::string at_server;
        std::string at_client;
        loopback.spawn(write_all(*loopback.client, to_server));
        loopback.spawn(write_all(*loopback.server, to_client));
        loopback.spawn(read_exactly(*loopback.server, to_server.size(), at_server));
        loopback.spawn(read_exactly(*loopback.client, to_client.size(), at_client));
        loopback.run();
        CHECK(at_server == to_server);
        CHECK(at_client == to_client);
        CHECK(loopback.client->remote() == loopback.server->local());
    }
}

TEST_CASE("the end of one side is the end of file on the other, which also ends a waiting read") {
    for (const Security& security : {insecure(), secret('k')}) {
        Loopback loopback;
        loopback.connect(security, security);
        std::string ignored;
        loopback.spawn(read_exactly(*loopback.server, 1, ignored));
        loopback.client->close();
        loopback.run();
        CHECK(loopback.failures() == eof_words);
    }
}

TEST_CASE("closing a stream ends its own waiting read") {
    for (const Security& security : {insecure(), secret('k')}) {
        Loopback loopback;
        loopback.connect(security, security);
        std::string ignored;
        loopback.spawn(read_exactly(*loopback.server, 1, ignored));
        loopback.post([&] { loopback.server->close(); });
        loopback.run();
        CHECK(loopback.failures() == "Operation canceled");
    }
}

TEST_CASE("another secret is refused in words on both sides") {
    Loopback loopback;
    loopback.connect(secret('c'), secret('s'));
    CHECK(loopback.client_refusal.find("another secret") != std::string::npos);
    CHECK(loopback.client_refusal.find("DDRUN_SECRET") != std::string::npos);
    CHECK(loopback.server_refusal.find("another secret") != std::string::npos);
    CHECK(loopback.seconds < 5);
}

TEST_CASE("a node with a secret at a rendezvous without: words on both sides") {
    Loopback loopback;
    loopback.connect(secret('c'), insecure());
    CHECK(loopback.client_refusal.find("--insecure") != std::string::npos);
    CHECK(loopback.server_refusal.find("--insecure") != std::string::npos);
}

TEST_CASE("a node without a secret at a rendezvous with one is sent a refusal it can read") {
    Loopback loopback;
    std::string answer;
    loopback.accept(secret('s'));
    loopback.spawn([](Loopback& here, std::string& heard) -> boost::asio::awaitable<void> {
        auto socket = co_await here.connected_socket();
        auto stream = co_await open_stream(std::move(socket), insecure(), here.soon());
        const std::string hello = encode(FromNode(NodeHello()));
        co_await stream->write(hello);
        co_await read_to_end(*stream, heard);
    }(loopback, answer));
    loopback.run();
    const auto message = decode_from_server(std::string_view(answer).substr(4));
    REQUIRE(message);
    CHECK(std::get<NodeRefused>(*message).exit_code == 77);
    CHECK(std::get<NodeRefused>(*message).words.find("--insecure") != std::string::npos);
    CHECK(loopback.server_refusal.find("--insecure") != std::string::npos);
}

TEST_CASE("PORT-5: foreign peers are closed at their first wrong byte") {
    for (const Security& security : {insecure(), secret('k')}) {
        for (const std::string& bytes :
             {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(8, '\xff'),
              std::string("\xdd\xdd"), std::string("\x16\x03\x01\xff\xff"),
              std::string("\x16\x16")}) {
            CAPTURE(bytes);
            Loopback loopback;
            std::string answer;
            loopback.accept(security);
            loopback.spawn(say_raw(loopback, bytes, answer));
            loopback.run();
            CHECK(loopback.seconds < 1);
            CHECK(loopback.failures() == "foreign");
        }
    }
}

TEST_CASE("half a hello and then silence end at the deadline") {
    const std::string tls_half("\x16\x03\x01\x01\x00\x01", 6);
    for (const std::string& bytes : {std::string(), preface(PrefaceKind::node).substr(0, 3),
                                     preface(PrefaceKind::obituary) + "\x10", tls_half}) {
        Loopback loopback;
        loopback.patience = std::chrono::milliseconds(50);
        std::string answer;
        loopback.accept(secret('k'));
        loopback.spawn(say_raw(loopback, bytes, answer));
        loopback.run();
        CHECK(loopback.failures() == "Connection timed out");
        CHECK(loopback.seconds >= 0.04);
        CHECK(loopback.seconds < 5);
    }
}

TEST_CASE("a silent server ends a client's handshake at the deadline") {
    Loopback loopback;
    loopback.patience = std::chrono::milliseconds(50);
    loopback.spawn([](Loopback& here) -> boost::asio::awaitable<void> {
        auto socket = co_await here.connected_socket();
        (void)co_await open_stream(std::move(socket), secret('k'), here.soon());
    }(loopback));
    loopback.run();
    CHECK(loopback.failures() == "Connection timed out");
}

TEST_CASE("what answers but is no rendezvous is foreign to a client") {
    Loopback loopback;
    loopback.spawn([](Loopback& here) -> boost::asio::awaitable<void> {
        auto socket = co_await here.acceptor.async_accept(boost::asio::use_awaitable);
        co_await boost::asio::async_write(
            socket, boost::asio::buffer("SSH-2.0-OpenSSH_9.2\r\n", 21), boost::asio::use_awaitable);
        std::array<char, 4096> hello;
        co_await socket.async_read_some(boost::asio::buffer(hello), boost::asio::use_awaitable);
    }(loopback));
    loopback.spawn([](Loopback& here) -> boost::asio::awaitable<void> {
        auto socket = co_await here.connected_socket();
        (void)co_await open_stream(std::move(socket), secret('k'), here.soon());
    }(loopback));
    loopback.run();
    CHECK(loopback.failures() == "foreign");
}

TEST_CASE("an obituary comes through in plain whatever the security") {
    const std::string frame = encode(FromNode(Obituary{"job", "token"}));
    for (const Security& security : {insecure(), secret('k')}) {
        Loopback loopback;
        std::string answer;
        loopback.accept(security);
        loopback.spawn(say_raw(loopback, preface(PrefaceKind::obituary) + frame, answer));
        loopback.run();
        REQUIRE(loopback.failures() == "");
        CHECK(loopback.server == nullptr);
        CHECK(decode_from_node(loopback.obituary) == FromNode(Obituary{"job", "token"}));
    }
}

TEST_CASE("memory of a connection at rest") {
    constexpr int pairs = 200;
    for (const Security& security : {insecure(), secret('k')}) {
        boost::asio::io_context io;
        std::vector<std::unique_ptr<Loopback>> all;
        Loopback warm_up;
        warm_up.connect(security, security);
        for (int i = 0; i < pairs; ++i) {
            all.push_back(std::make_unique<Loopback>());
        }
        const std::size_t before = allocated_bytes();
        for (auto& one : all) {
            one->connect(security, security);
            std::string heard;
            one->spawn(write_all(*one->client, "hello"));
            one->spawn(read_exactly(*one->server, 5, heard));
            one->run();
        }
        const std::size_t each = (allocated_bytes() - before) / (2 * pairs);
        WARN((security.mode == Security::Mode::plain ? "plain" : "TLS")
             << ": " << each << " bytes for each end of a connection");
        CHECK(each < 32 * 1024);
    }
}
