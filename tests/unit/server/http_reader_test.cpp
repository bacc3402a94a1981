#include "rendezvous/server/http_reader.hpp"
#include "tests/support/catch.hpp"

#include <string>

using namespace ddrun::rendezvous;

namespace {

std::optional<StatusPage> page_of(const std::string& bytes) {
    HttpReader reader;
    const auto question = reader.read(bytes);
    return question ? std::optional(question->page) : std::nullopt;
}

}  // namespace

TEST_CASE("the three pages, whatever stands behind the path") {
    CHECK(page_of("GET /healthz HTTP/1.0\r\n\r\n") == StatusPage::health);
    CHECK(page_of("GET /status?pretty HTTP/1.1\r\nHost: a\r\n\r\n") == StatusPage::status);
    CHECK(page_of("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n") ==
          StatusPage::metrics);
    CHECK(page_of("GET / HTTP/1.1\r\n\r\n") == StatusPage::unknown);
    CHECK(page_of("GET /status/x HTTP/1.1\r\n\r\n") == StatusPage::unknown);
}

TEST_CASE("the page can only be read") {
    for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
        CHECK(page_of(method + " /status HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc") ==
              StatusPage::not_allowed);
    }
    HttpReader reader;
    CHECK(reader.read("HEAD /status HTTP/1.1\r\n\r\n") == StatusQuestion{StatusPage::status, true});
}

TEST_CASE("a request may come byte by byte") {
    HttpReader reader;
    const std::string bytes = "GET /healthz HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
        REQUIRE_FALSE(reader.read(bytes.substr(i, 1)));
    }
    CHECK(reader.read(bytes.substr(bytes.size() - 1)) == StatusQuestion{StatusPage::health, false});
}

TEST_CASE("what is no HTTP, and a head without end, is answered and not kept") {
    CHECK(page_of("\x16\x03\x01\x02") == StatusPage::malformed);
    CHECK(page_of("GET /status\r\n\r\n") == StatusPage::malformed);
    CHECK(page_of("GET /" + std::string(max_http_head_bytes, 'a')) == StatusPage::too_large);
    HttpReader reader;
    std::optional<StatusQuestion> answer = reader.read("GET / HTTP/1.1\r\n");
    std::size_t sent = 0;
    while (!answer && sent < 2 * max_http_head_bytes) {
        answer = reader.read("X-More: and more\r\n");
        sent += 18;
    }
    CHECK(answer == StatusQuestion{StatusPage::too_large, false});
    CHECK(sent <= max_http_head_bytes + 18);
}

TEST_CASE("a head is too large as a whole, whatever its parts are") {
    HttpReader reader;
    CHECK_FALSE(reader.read("GET / HTTP/1.1\r\nA: " + std::string(5000, 'a') + "\r\n"));
    CHECK(reader.read(std::string(5000, 'b')) == StatusQuestion{StatusPage::too_large, false});
}
