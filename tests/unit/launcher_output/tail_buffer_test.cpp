#include "launcher/runtime/output/tail_buffer.hpp"

#include "tests/support/catch.hpp"

#include <random>

using namespace ddrun::launcher;

using Lines = std::vector<std::string>;

TEST_CASE("the tail is the last lines, oldest first") {
    TailBuffer tail(1000);
    CHECK(tail.lines(20).empty());
    tail.add("one\ntwo\nth");
    tail.add("ree\n");
    CHECK(tail.lines(2) == Lines{"two", "three"});
    CHECK(tail.lines(20) == Lines{"one", "two", "three"});
}

TEST_CASE("an unfinished last line and empty lines belong to the tail") {
    TailBuffer tail(1000);
    tail.add("a\n\nb");
    CHECK(tail.lines(20) == Lines{"a", "", "b"});
}

TEST_CASE("of a progress bar the tail has the last state") {
    TailBuffer tail(1000);
    tail.add("\r10%\r20%\r30%\ndos\r\nend\r");
    CHECK(tail.lines(20) == Lines{"30%", "dos", "end"});
}

TEST_CASE("a line whose start is gone says so") {
    TailBuffer tail(8);
    tail.add("0123456789\nab\n");
    CHECK(tail.lines(20) == Lines{"...6789", "ab"});
    tail.clear();
    CHECK(tail.empty());
    tail.add("x\n");
    CHECK(tail.lines(20) == Lines{"x"});
}

TEST_CASE("the ring keeps exactly the last bytes of any writes") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    TailBuffer tail(64);
    std::string all;
    for (int i = 0; i < 2000; ++i) {
        const std::string bytes(random() % 90, static_cast<char>('a' + i % 26));
        tail.add(bytes);
        all += bytes;
        const auto expected = all.size() > 64 ? "..." + all.substr(all.size() - 64) : all;
        REQUIRE(tail.lines(1) == (all.empty() ? Lines{} : Lines{expected}));
    }
}
