#include "rendezvous/protocol/preface.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <string>

using namespace ddrun::rendezvous;
using namespace std::string_literals;
using Result = PrefaceCheck::Result;

TEST_CASE("a preface says what follows, whatever follows") {
    const auto kind = GENERATE(PrefaceKind::node, PrefaceKind::obituary, PrefaceKind::munge);
    const std::string bytes = preface(kind);
    CHECK(bytes.size() == preface_bytes);
    CHECK(bytes.front() == preface_first_byte);
    CHECK(check_preface(bytes) == PrefaceCheck{Result::whole, kind});
    CHECK(check_preface(bytes + "more") == PrefaceCheck{Result::whole, kind});
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK(check_preface(bytes.substr(0, size)).result == Result::incomplete);
}

TEST_CASE("PORT-5: a stranger is known by its first wrong byte") {
    CHECK(check_preface("G").result == Result::foreign);              // GET / HTTP/1.0
    CHECK(check_preface("\x16\x03\x01"s).result == Result::foreign);  // TLS
    CHECK(check_preface("\0"s).result == Result::foreign);
    CHECK(check_preface("\xff"s).result == Result::foreign);
    for (std::size_t place = 0; place < preface_bytes; ++place) {
        std::string bytes = preface(PrefaceKind::node);
        bytes[place] = static_cast<char>(bytes[place] ^ 0x20);
        CHECK(check_preface(bytes.substr(0, place + 1)).result == Result::foreign);
    }
}
