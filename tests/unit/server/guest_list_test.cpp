#include "rendezvous/server/guest_list.hpp"
#include "tests/support/catch.hpp"

#include <string>
#include <vector>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace std::chrono_literals;

namespace {

using Lines = std::vector<std::string>;
const TimePoint start{1h};

}  // namespace

TEST_CASE("PORT-5: a scan of one address is one line, and the next one ten minutes later") {
    GuestList guests;
    for (int i = 0; i < 1000; ++i) guests.turned_away("10.9.0.3", "", start + i * 1ms);
    CHECK(guests.lines_due(start + 999ms).empty());
    CHECK(guests.lines_due(start + 1s) ==
          Lines{"ignored 1000 malformed connections from 10.9.0.3"});
    guests.turned_away("10.9.0.3", "", start + 2s);
    CHECK(guests.lines_due(start + 10min).empty());
    CHECK(guests.lines_due(start + 11min) == Lines{"ignored 1 malformed connection from 10.9.0.3"});
    CHECK(guests.total() == 1001);
}

TEST_CASE("each address and each reason has its own line") {
    GuestList guests;
    guests.turned_away("10.9.0.3", "", start);
    guests.turned_away("10.9.0.3", "it has another secret", start);
    guests.turned_away("10.9.0.4", "it has another secret", start);
    guests.turned_away("10.9.0.4", "it has another secret", start);
    CHECK(guests.lines_due(start + 1s) ==
          Lines{"ignored 1 malformed connection from 10.9.0.3",
                "refused 1 connection from 10.9.0.3: it has another secret",
                "refused 2 connections from 10.9.0.4: it has another secret"});
}

TEST_CASE("an address that stays away is forgotten and news again") {
    GuestList guests;
    guests.turned_away("10.9.0.3", "", start);
    CHECK(guests.lines_due(start + 1s).size() == 1);
    CHECK(guests.lines_due(start + 20min).empty());
    guests.turned_away("10.9.0.3", "", start + 21min);
    CHECK(guests.lines_due(start + 21min + 1s).size() == 1);
}

TEST_CASE("visitors of many addresses are counted together, in bounded memory") {
    GuestList guests;
    for (int i = 0; i < 100'000; ++i) guests.turned_away(std::to_string(i), "", start);
    const Lines lines = guests.lines_due(start + 1s);
    CHECK(lines.size() == 257);
    CHECK(lines.back() == "ignored 99744 malformed connections from other addresses");
}
