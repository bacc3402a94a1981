#include "rendezvous/platform/random.hpp"

#include "tests/support/catch.hpp"

#include <set>
#include <string>

TEST_CASE("an incarnation is 32 hexadecimal digits and never the same twice") {
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
        const std::string hex = ddrun::detail::random_hex_128();
        CHECK(hex.size() == 32);
        CHECK(hex.find_first_not_of("0123456789abcdef") == std::string::npos);
        seen.insert(hex);
    }
    CHECK(seen.size() == 100);
}
