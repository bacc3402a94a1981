#include "rendezvous/platform/last_words.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/protocol/preface.hpp"
#include "tests/process/transport/loopback.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <future>
#include <string>

// The keeper's last message, sent without an event loop.
using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;
using namespace std::chrono_literals;

namespace {

std::string address_of(const Loopback& loopback) {
    return "127.0.0.1:" + std::to_string(loopback.acceptor.local_endpoint().port());
}

std::future<bool> sending(const std::string& server, std::chrono::milliseconds limit) {
    const std::string bytes =
        preface(PrefaceKind::obituary) + encode(FromNode(Obituary{"job", "token"}));
    return std::async(std::launch::async, [server, bytes, limit] {
        return detail::send_last_words(server, bytes, limit);
    });
}

}  // namespace

TEST_CASE("an obituary reaches a server that asks for a secret") {
    Loopback loopback;
    loopback.accept({});  // psk
    auto sent = sending(address_of(loopback), 5s);
    loopback.run();
    CHECK(sent.get());
    CHECK(decode_from_node(loopback.obituary) == FromNode(Obituary{"job", "token"}));
}

TEST_CASE("a server that is gone, silent or no address does not hold the keeper up") {
    std::string gone;
    {
        const Loopback closed;
        gone = address_of(closed);
    }
    const Loopback silent;
    const TimePoint began = detail::now();
    CHECK_FALSE(sending(gone, 5s).get());
    CHECK_FALSE(sending("not an address", 5s).get());
    (void)sending(address_of(silent), 100ms).get();
    CHECK(detail::now() - began < 2s);
}
