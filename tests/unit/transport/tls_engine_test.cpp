#include "rendezvous/transport/tls_engine.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

// Both ends of a TLS connection in one function: bytes are carried by hand.
using namespace ddrun::rendezvous;

namespace {

Key key_of(char letter) {
    Key key;
    key.fill(static_cast<unsigned char>(letter));
    return key;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

// The words of the NotAuthorised that the handshake ends in.
std::string refusal(TlsEngine& engine) {
    try {
        (void)engine.handshake();
    } catch (const NotAuthorised& refused) {
        return refused.what();
    }
    return "no exception";
}

struct Pair {
    explicit Pair(char client_key = 'k', char server_key = 'k',
                  const std::string& client_name = "ddrun")
        : client(TlsEngine::Side::client, {client_name, key_of(client_key)}),
          server(TlsEngine::Side::server, {"ddrun", key_of(server_key)}) {}

    // Until both are done; throws what one of them throws.
    void shake_hands(std::size_t step = 1u << 20) {
        for (int turn = 0; turn < 100 && !(client_done && server_done); ++turn) {
            client_done = client.handshake();
            carry(client, server, step, [&] { server_done = server.handshake(); });
            server_done = server.handshake();
            carry(server, client, step, [&] { client_done = client.handshake(); });
        }
        REQUIRE((client_done && server_done));
    }
    template <typename Then>
    static void carry(TlsEngine& from, TlsEngine& to, std::size_t step, Then then) {
        const std::string bytes = from.take_output();
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            to.receive(std::string_view(bytes).substr(at, step));
            then();
        }
    }
    static std::string read_all(TlsEngine& engine) {
        std::string text;
        std::array<char, 1000> buffer;
        while (const std::size_t size = engine.read(buffer)) text.append(buffer.data(), size);
        return text;
    }

    TlsEngine client;
    TlsEngine server;
    bool client_done = false;
    bool server_done = false;
};

}  // namespace

TEST_CASE("two ends with one key talk, whatever the pieces the bytes come in") {
    for (const std::size_t step : {1u, 7u, 100u, 100000u}) {
        Pair pair;
        pair.shake_hands(step);
        pair.client.write("hello");
        pair.server.receive(pair.client.take_output());
        CHECK(Pair::read_all(pair.server) == "hello");
        pair.server.write("welcome");
        pair.client.receive(pair.server.take_output());
        CHECK(Pair::read_all(pair.client) == "welcome");
    }
}

TEST_CASE("what is written before the peer has read comes in order") {
    Pair pair;
    pair.shake_hands();
    const std::string big(300'000, 'x');
    pair.client.write("a");
    pair.client.write(big);
    pair.client.write("b");
    pair.server.receive(pair.client.take_output());
    CHECK(Pair::read_all(pair.server) == "a" + big + "b");
}

TEST_CASE("a client may speak together with the end of its handshake") {
    Pair pair;
    REQUIRE_FALSE(pair.client.handshake());
    pair.server.receive(pair.client.take_output());
    REQUIRE_FALSE(pair.server.handshake());
    pair.client.receive(pair.server.take_output());
    REQUIRE(pair.client.handshake());
    pair.client.write("at once");
    pair.server.receive(pair.client.take_output());
    REQUIRE(pair.server.handshake());
    CHECK(Pair::read_all(pair.server) == "at once");
}

TEST_CASE("another key is refused on both sides in words that do not show it") {
    Pair pair('k', 'o');
    REQUIRE_FALSE(pair.client.handshake());
    pair.server.receive(pair.client.take_output());
    CHECK_THROWS_AS(pair.server.handshake(), NotAuthorised);
    pair.client.receive(pair.server.take_output());
    const std::string words = refusal(pair.client);
    CHECK(contains(words, "another secret"));
    CHECK(contains(words, "--secret-file"));
}

TEST_CASE("an identity that the server does not know is foreign") {
    Pair pair('k', 'k', "somebody");
    REQUIRE_FALSE(pair.client.handshake());
    pair.server.receive(pair.client.take_output());
    CHECK_THROWS_AS(pair.server.handshake(), Foreign);
    pair.client.receive(pair.server.take_output());
    CHECK_THROWS_AS(pair.client.handshake(), Foreign);
}

TEST_CASE("bytes that are no TLS are foreign on both sides") {
    Pair pair;
    pair.server.receive("GET / HTTP/1.0\r\n\r\n");
    CHECK_THROWS_AS(pair.server.handshake(), Foreign);
    REQUIRE_FALSE(pair.client.handshake());
    pair.client.receive("HTTP/1.0 400 Bad Request\r\n\r\n");
    CHECK_THROWS_AS(pair.client.handshake(), Foreign);
}

TEST_CASE("an alert instead of a handshake tells the client what the server wants") {
    const auto words_for = [](Alert alert) {
        Pair pair;
        REQUIRE_FALSE(pair.client.handshake());
        pair.client.receive(alert_record(alert));
        return refusal(pair.client);
    };
    CHECK(contains(words_for(Alert::insufficient_security), "--insecure"));
    CHECK(contains(words_for(Alert::unknown_identity), "munge"));
    CHECK(contains(words_for(Alert::access_denied), "munge credential"));
}

TEST_CASE("a byte changed on the way is noticed") {
    Pair pair;
    pair.shake_hands();
    pair.client.write("hello");
    std::string bytes = pair.client.take_output();
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    pair.server.receive(bytes);
    std::array<char, 100> buffer;
    CHECK_THROWS_AS(pair.server.read(buffer), Foreign);
}

TEST_CASE("a record that was sent before cannot be sent again") {
    Pair pair;
    pair.shake_hands();
    pair.client.write("once");
    const std::string bytes = pair.client.take_output();
    pair.server.receive(bytes + bytes);
    std::array<char, 4> buffer;
    CHECK(pair.server.read(buffer) == 4);
    CHECK_THROWS_AS(pair.server.read(buffer), Foreign);
}

TEST_CASE("a whole client hello is small") {
    Pair pair;
    REQUIRE_FALSE(pair.client.handshake());
    const std::string hello = pair.client.take_output();
    CAPTURE(hello.size());
    CHECK(hello.front() == '\x16');
    CHECK(hello.size() < 512);
}
