#include "rendezvous/protocol/bytes.hpp"

#include "tests/support/catch.hpp"

#include <cstdint>
#include <limits>
#include <string>

using namespace ddrun::rendezvous;
using namespace std::string_literals;

TEST_CASE("numbers are little-endian and of fixed width") {
    ByteWriter out;
    out.number(std::uint8_t{0xab});
    out.number(std::uint16_t{0x0102});
    out.number(std::int32_t{-2});
    out.number(std::uint64_t{0x0102030405060708});
    out.boolean(true);
    CHECK(out.take() == "\xab\x02\x01\xfe\xff\xff\xff\x08\x07\x06\x05\x04\x03\x02\x01\x01"s);
}

TEST_CASE("a string is its length and its bytes") {
    ByteWriter out;
    out.string("a\0b"s);
    CHECK(out.take() == "\3\0\0\0a\0b"s);
}

TEST_CASE("a frame has its length in front") {
    ByteWriter out;
    out.number(std::uint8_t{7});
    CHECK(out.take_frame() == "\1\0\0\0\7"s);
}

TEST_CASE("extremes survive the way through bytes") {
    ByteWriter out;
    out.number(std::numeric_limits<std::int64_t>::min());
    out.number(std::numeric_limits<std::int64_t>::max());
    out.number(std::numeric_limits<std::uint64_t>::max());
    out.string("");
    const std::string bytes = out.take();
    ByteReader in(bytes);
    CHECK(in.number<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
    CHECK(in.number<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
    CHECK(in.number<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
    CHECK(in.string().empty());
    CHECK(in.complete());
}

TEST_CASE("reading past the end fails for good and gives zeros") {
    ByteReader in("\1\2\3");
    CHECK(in.number<std::uint32_t>() == 0);
    CHECK(in.failed());
    CHECK(in.number<std::uint8_t>() == 0);
    CHECK(in.string().empty());
    CHECK_FALSE(in.complete());
}

TEST_CASE("bytes left over are not complete") {
    ByteReader in("\1\2");
    CHECK(in.number<std::uint8_t>() == 1);
    CHECK_FALSE(in.failed());
    CHECK_FALSE(in.complete());
}

TEST_CASE("a length beyond what is there allocates nothing") {
    ByteReader huge("\xff\xff\xff\xffx");
    CHECK(huge.string().empty());
    CHECK(huge.failed());
    ByteReader list("\xff\xff\xff\x0f    ");
    CHECK(list.count(4) == 0);
    CHECK(list.failed());
}

TEST_CASE("a string over its limit fails") {
    ByteWriter out;
    out.string("four");
    const std::string bytes = out.take();
    ByteReader within(bytes), beyond(bytes);
    CHECK(within.string(4) == "four");
    CHECK(beyond.string(3).empty());
    CHECK(beyond.failed());
}

TEST_CASE("only 0 and 1 are booleans") {
    const std::string bytes = "\0\1\2"s;
    ByteReader in(bytes);
    CHECK_FALSE(in.boolean());
    CHECK(in.boolean());
    CHECK_FALSE(in.failed());
    (void)in.boolean();
    CHECK(in.failed());
}
