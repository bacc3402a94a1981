#include "rendezvous/server/status_server.hpp"
#include "tests/process/server/peers.hpp"
#include "tests/support/catch.hpp"

#include <boost/asio/ip/address.hpp>

#include <memory>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;

namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

struct Page {
    TestServer server;
    StatusServer page{server.io, {boost::asio::ip::address_v4::loopback(), 0}, [this] {
                          return server.server.status();
                      }};
    int port = page.endpoint().port();

    std::string answer(const std::string& request) {
        RawClient client(port, request);
        CHECK(server.await([&] { return client.closed(); }));
        return client.bytes();
    }
};

}  // namespace

TEST_CASE("the status page tells of the jobs there are") {
    Page page;
    RawClient node(page.server.port);
    node.greet(hello_of(0, 1));
    REQUIRE(page.server.await([&] { return node.told<RoundGranted>() != nullptr; }));
    CHECK(has(page.answer("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"), "200 OK"));
    const std::string status = page.answer("GET /status HTTP/1.0\r\n\r\n");
    CHECK(has(status, "\"job_id\":\"job\""));
    CHECK(has(status, "\"state\":\"running\""));
    CHECK(has(status, "\"name\":\"n0\""));
    CHECK(has(page.answer("GET /metrics HTTP/1.1\r\n\r\n"), "ddrun_job_round{job=\"job\"} 1\n"));
    CHECK(has(page.answer("GET /else HTTP/1.1\r\n\r\n"), " 404 "));
    CHECK(has(page.answer("POST /status HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"), " 405 "));
    CHECK(has(page.answer("nonsense\r\n\r\n"), " 400 "));
    CHECK(has(page.answer("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n"), " 431 "));
}

TEST_CASE("a few visitors at a time; who is slow does not stand in the way for long") {
    Page page;
    std::vector<std::unique_ptr<RawClient>> slow;
    for (int i = 0; i < 60; ++i) {
        slow.push_back(std::make_unique<RawClient>(page.port, "GET /"));
        page.server.pass(1ms);
    }
    CHECK(page.server.await([&] {  // those beyond 32 are closed at once, the others after 5 s
        int open = 0;
        for (const auto& visitor : slow) open += visitor->closed() ? 0 : 1;
        return open == 0;
    }));
    CHECK(has(page.answer("GET /healthz HTTP/1.1\r\n\r\n"), "200 OK"));
}
