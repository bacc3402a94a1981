#include "rendezvous/protocol/frame_reader.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <string>
#include <vector>

using ddrun::rendezvous::FrameReader;
using namespace std::string_literals;

namespace {

std::string frame(const std::string& body) {
    std::string head;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        head.push_back(static_cast<char>((body.size() >> shift) & 0xffu));
    }
    return head + body;
}

}  // namespace

TEST_CASE("frames come out whole, in order, whatever the pieces") {
    const auto seed = GENERATE(range(1u, 50u));
    INFO("seed " << seed);
    ddrun::testing::Dice dice(seed);
    std::vector<std::string> sent, received;
    std::string stream;
    for (int i = 0; i < 40; ++i) {
        sent.push_back(dice.bytes(300));
        sent.back().push_back('.');
        stream += frame(sent.back());
    }
    FrameReader reader(1000);
    while (!stream.empty()) {
        const auto size = static_cast<std::size_t>(dice.between(1, 400));
        reader.append(std::string_view(stream).substr(0, size));
        stream.erase(0, size);
        while (const auto next = reader.next()) received.emplace_back(*next);
    }
    CHECK(received == sent);
    CHECK_FALSE(reader.broken());
}

TEST_CASE("a frame of exactly the limit passes, one byte more breaks the stream for good") {
    FrameReader reader(10);
    reader.append(frame(std::string(10, 'x')));
    REQUIRE(reader.next().has_value());
    reader.append(frame(std::string(11, 'x')));
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.broken());
    reader.append(frame("fine"));
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.broken());
}

TEST_CASE("a frame of length 0 breaks the stream") {
    FrameReader reader(10);
    reader.append("\0\0\0\0"s);
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.broken());
}

TEST_CASE("frames before the broken one are still delivered") {
    FrameReader reader(10);
    reader.append(frame("ok") + "\xff\xff\xff\xff"s);
    CHECK(reader.next() == "ok");
    CHECK_FALSE(reader.broken());
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.broken());
}

TEST_CASE("an unfinished frame is not delivered") {
    FrameReader reader(100);
    const std::string whole = frame("hello");
    for (const char byte : whole.substr(0, whole.size() - 1)) {
        reader.append({&byte, 1});
        CHECK_FALSE(reader.next().has_value());
    }
    reader.append({&whole.back(), 1});
    CHECK(reader.next() == "hello");
}

TEST_CASE("a higher limit holds from the next frame on") {
    FrameReader reader(1);
    reader.append("\1\0\0\0a\2\0\0\0bc"s);
    CHECK(reader.next() == "a");
    reader.set_limit(2);
    CHECK(reader.next() == "bc");
    CHECK_FALSE(reader.broken());
}
