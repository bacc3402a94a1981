#include "rendezvous/transport/address.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/transport/endpoint_owner.hpp"
#include "rendezvous/transport/listener.hpp"
#include "tests/process/transport/loopback.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <string>

// Look-ups, connections and ownership with the addresses of this machine.
using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

template <typename Result>
void keep(Loopback& loopback, asio::awaitable<Result> task, std::optional<Result>& result) {
    loopback.spawn(
        [](asio::awaitable<Result> wait, std::optional<Result>& kept) -> asio::awaitable<void> {
            kept = co_await std::move(wait);
        }(std::move(task), result));
    loopback.run();
}

Endpoints look_up(Loopback& loopback, const std::string& host) {
    std::optional<Endpoints> found;
    keep(loopback, resolve(host, 29400, loopback.soon()), found);
    return found.value_or(Endpoints());
}

tcp::endpoint closed_port() {
    const Loopback closed;
    return closed.acceptor.local_endpoint();
}

// An address that never answers: packets to it are dropped on the way (RFC 5737).
tcp::endpoint dead_end() {
    return {asio::ip::make_address("192.0.2.1"), 9};
}

}  // namespace

TEST_CASE("a literal is itself and needs no look-up") {
    Loopback loopback;
    CHECK(look_up(loopback, "10.9.0.1") ==
          Endpoints{tcp::endpoint(asio::ip::make_address("10.9.0.1"), 29400)});
    CHECK(text_of(look_up(loopback, "fd00:9::1").at(0)) == "[fd00:9::1]:29400");
}

TEST_CASE("a name gives all its addresses, the lowest first") {
    Loopback loopback;
    const Endpoints found = look_up(loopback, "localhost");
    REQUIRE_FALSE(found.empty());
    CHECK(std::is_sorted(found.begin(), found.end()));
    CHECK(found.front().address().is_loopback());
    CHECK(found.front().port() == 29400);
}

TEST_CASE("RDZV-1: a name that does not exist is an error that says so, each time") {
    for (int i = 0; i < 2; ++i) {
        Loopback loopback;
        CHECK(look_up(loopback, "no-such-host.invalid").empty());
        CHECK_FALSE(loopback.failures().empty());
    }
}

TEST_CASE("a connection goes to the first address that answers; dead ones cost 250 ms each") {
    Loopback target;
    const tcp::endpoint alive = target.acceptor.local_endpoint();
    {
        Loopback loopback;
        std::optional<tcp::socket> socket;
        keep(loopback, connect_to_any({closed_port(), alive}, {}, loopback.soon()), socket);
        REQUIRE(socket);
        CHECK(socket->remote_endpoint() == alive);
        CHECK(loopback.seconds < 0.2);  // refused: the next is tried at once
    }
    {
        Loopback loopback;
        std::optional<tcp::socket> socket;
        keep(loopback, connect_to_any({dead_end(), alive}, {}, loopback.soon()), socket);
        REQUIRE(socket);
        CHECK(socket->remote_endpoint() == alive);
        CHECK(loopback.seconds < 2);
    }
}

TEST_CASE("nobody there: the reason, or the deadline") {
    {
        Loopback loopback;
        std::optional<tcp::socket> socket;
        keep(loopback, connect_to_any({closed_port(), closed_port()}, {}, loopback.soon()), socket);
        CHECK(loopback.failures() == "Connection refused");
    }
    Loopback patient;
    std::optional<tcp::socket> socket;
    patient.patience = 50ms;
    keep(patient, connect_to_any({dead_end()}, {}, patient.soon()), socket);
    CHECK_FALSE(socket);
    CHECK_FALSE(patient.failures().empty());  // where there is no route it says so
    CHECK(patient.seconds < 5);
}

TEST_CASE("ADDR-1: a connection can be bound to an address of this node") {
    Loopback loopback;
    std::optional<tcp::socket> socket;
    const auto from = asio::ip::make_address("127.0.0.77");
    keep(loopback, connect_to_any({loopback.acceptor.local_endpoint()}, from, loopback.soon()),
         socket);
    REQUIRE(socket);
    CHECK(socket->local_endpoint().address() == from);
}

TEST_CASE("addresses and interfaces that this node does not have are listed with what it has") {
    CHECK(choose_local_address("127.0.0.1", {}) == asio::ip::make_address("127.0.0.1"));
    CHECK(choose_local_address({}, "lo")->is_loopback());
    CHECK_FALSE(choose_local_address({}, {}));
    const auto words = [](std::optional<std::string> address, std::optional<std::string> name) {
        try {
            (void)choose_local_address(address, name);
        } catch (const NoSuchAddress& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    for (const std::string& said :
         {words("192.0.2.1", {}), words({}, "nosuch0"), words("no-such-host.invalid", {})}) {
        CHECK(said.find("127.0.0.1 (lo)") != std::string::npos);
    }
}

TEST_CASE("local addresses are those of this machine") {
    const auto all = local_addresses();
    CHECK(std::any_of(all.begin(), all.end(),
                      [](const LocalAddress& one) { return one.address.is_loopback(); }));
    CHECK(is_local(asio::ip::make_address("127.0.1.1")));
    CHECK_FALSE(is_local(asio::ip::make_address("192.0.2.1")));
}

TEST_CASE("an endpoint of this node is owned by the first that claims it") {
    const tcp::endpoint free = closed_port();
    Loopback loopback;
    std::optional<Ownership> first;
    keep(loopback, claim_endpoint({free}), first);
    REQUIRE(first);
    CHECK(first->why_not == "");
    REQUIRE(first->listeners.size() == 1);
    CHECK(first->listeners[0].local_endpoint() == free);

    std::optional<Ownership> second;
    keep(loopback, claim_endpoint({free}), second);
    REQUIRE(second);
    CHECK(second->listeners.empty());
    CHECK(second->why_not.find("in use") != std::string::npos);
}

TEST_CASE("an endpoint elsewhere is not claimed") {
    Loopback loopback;
    std::optional<Ownership> result;
    keep(loopback, claim_endpoint({dead_end()}), result);
    REQUIRE(result);
    CHECK(result->listeners.empty());
    CHECK(result->why_not.find("192.0.2.1") != std::string::npos);
}

TEST_CASE("a server is superseded by a lower address of the same name that answers") {
    const auto superseded = [](const std::string& host, const std::string& served) {
        Loopback loopback;  // 127.0.0.1
        const int port = loopback.acceptor.local_endpoint().port();
        std::optional<bool> result;
        const tcp::endpoint here(asio::ip::make_address(served), static_cast<unsigned short>(port));
        keep(loopback, is_superseded(host, port, here, loopback.soon()), result);
        return result.value();
    };
    CHECK(superseded("127.0.0.1", "127.0.0.2"));
    CHECK_FALSE(superseded("127.0.0.1", "127.0.0.1"));
    CHECK_FALSE(superseded("no-such-host.invalid", "127.0.0.2"));
}
