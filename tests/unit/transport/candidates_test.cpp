#include "rendezvous/transport/endpoint_owner.hpp"

#include "tests/support/catch.hpp"

#include <string>
#include <vector>

// Which node serves the rendezvous, decided from addresses alone.
using namespace ddrun::rendezvous;

namespace {

boost::asio::ip::tcp::endpoint at(const std::string& address) {
    return {boost::asio::ip::make_address(address), 29400};
}

std::vector<LocalAddress> with(const std::vector<std::string>& addresses) {
    std::vector<LocalAddress> here = {{"lo", boost::asio::ip::make_address("127.0.0.1")}};
    for (const std::string& one : addresses) {
        here.push_back({"eth0", boost::asio::ip::make_address(one)});
    }
    return here;
}

}  // namespace

TEST_CASE("ADDR-4: the node with the endpoint's address serves, also with its second address") {
    CHECK(candidates({at("10.9.0.1")}, with({"10.9.0.1"})).endpoints == Endpoints{at("10.9.0.1")});
    CHECK(candidates({at("10.9.1.1")}, with({"10.9.0.1", "10.9.1.1"})).endpoints.size() == 1);
    CHECK(candidates({at("fd00:9::1")}, with({"fd00:9::1"})).endpoints.size() == 1);
}

TEST_CASE("ADDR-4: a node without it does not, and says what it has") {
    const Candidates none = candidates({at("10.9.0.1")}, with({"10.9.0.2"}));
    CHECK(none.endpoints.empty());
    CHECK(none.why_not == "the endpoint (10.9.0.1) is no address of this node (10.9.0.2)");
    CHECK(candidates({at("10.9.0.1")}, with({})).why_not.find("no address but loopback") !=
          std::string::npos);
    CHECK_FALSE(candidates({}, with({})).why_not.empty());
}

TEST_CASE("of several nodes under one name the one with the lowest address serves") {
    const Endpoints name = {at("10.9.0.1"), at("10.9.0.2")};
    CHECK(candidates(name, with({"10.9.0.1"})).endpoints == Endpoints{at("10.9.0.1")});
    const Candidates other = candidates(name, with({"10.9.0.2"}));
    CHECK(other.endpoints.empty());
    CHECK(other.why_not.find("lowest") != std::string::npos);
}

TEST_CASE("a name that has both kinds of addresses of one node is served at both") {
    const Endpoints name = {at("10.9.0.1"), at("fd00:9::1")};
    CHECK(candidates(name, with({"10.9.0.1", "fd00:9::1"})).endpoints == name);
}

TEST_CASE("every node may serve a loopback endpoint") {
    CHECK(candidates({at("127.0.0.1")}, with({"10.9.0.1"})).endpoints.size() == 1);
    CHECK(candidates({at("127.0.1.1")}, with({})).endpoints.size() == 1);
    CHECK(candidates({at("::1")}, with({})).endpoints.size() == 1);
}
