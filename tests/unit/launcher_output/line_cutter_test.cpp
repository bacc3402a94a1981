#include "launcher/runtime/output/line_cutter.hpp"

#include "tests/support/catch.hpp"

#include <random>
#include <string>
#include <vector>

using namespace ddrun::launcher;

namespace {

struct Unit {
    std::string text;
    LineEnd end;
    bool operator==(const Unit&) const = default;
};
using Units = std::vector<Unit>;

std::ostream& operator<<(std::ostream& to, const Unit& unit) {
    return to << "'" << unit.text << "'/" << static_cast<int>(unit.end);
}

Units cut(const std::vector<std::string>& chunks, std::size_t limit = 100) {
    LineCutter cutter(limit);
    Units units;
    const auto emit = [&](std::string_view unit, LineEnd end) {
        units.push_back({std::string(unit), end});
    };
    for (const auto& chunk : chunks) cutter.feed(chunk, emit);
    cutter.flush(emit);
    return units;
}

// The same rules, one byte at a time.
Units cut_slowly(const std::string& text, std::size_t limit) {
    Units units;
    std::string line;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool crlf = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
        if (text[i] == '\n' || (text[i] == '\r' && !crlf)) {
            units.push_back(
                {line + text[i], text[i] == '\n' ? LineEnd::newline : LineEnd::carriage_return});
            line.clear();
        } else {
            if (line.size() == limit && !crlf) {
                units.push_back({line, LineEnd::none});
                line.clear();
            }
            line += text[i];
        }
    }
    if (!line.empty()) units.push_back({line, LineEnd::none});
    return units;
}

std::vector<std::string> split_anyhow(const std::string& text, std::mt19937& random,
                                      std::size_t most) {
    std::vector<std::string> chunks;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = 1 + random() % most;
        chunks.push_back(text.substr(at, size));
        at += size;
    }
    return chunks;
}

}  // namespace

TEST_CASE("whole lines come out as they are") {
    CHECK(cut({"one\ntwo\n\n"}) == Units{{"one\n", LineEnd::newline},
                                         {"two\n", LineEnd::newline},
                                         {"\n", LineEnd::newline}});
}

TEST_CASE("LOG-1: a line split over many writes is joined") {
    CHECK(cut({"a", "b", "c\nd", "e\n"}) ==
          Units{{"abc\n", LineEnd::newline}, {"de\n", LineEnd::newline}});
}

TEST_CASE("the last unfinished line comes out at the end") {
    CHECK(cut({"done\nno newl", "ine"}) ==
          Units{{"done\n", LineEnd::newline}, {"no newline", LineEnd::none}});
    CHECK(cut({}).empty());
}

TEST_CASE("a carriage return ends a unit of its own") {
    CHECK(cut({"10%\r20%\rdone\n"}) == Units{{"10%\r", LineEnd::carriage_return},
                                             {"20%\r", LineEnd::carriage_return},
                                             {"done\n", LineEnd::newline}});
}

TEST_CASE("\\r\\n is the end of a line, also when a read ends between the two") {
    CHECK(cut({"dos\r\n"}) == Units{{"dos\r\n", LineEnd::newline}});
    CHECK(cut({"dos\r", "\n"}) == Units{{"dos\r\n", LineEnd::newline}});
    CHECK(cut({"10%\r", "20%"}) ==
          Units{{"10%\r", LineEnd::carriage_return}, {"20%", LineEnd::none}});
}

TEST_CASE("a line over the limit comes in pieces of the limit") {
    CHECK(cut({"abcdefgh\n"}, 3) ==
          Units{{"abc", LineEnd::none}, {"def", LineEnd::none}, {"gh\n", LineEnd::newline}});
    CHECK(cut({"abc\n"}, 3) == Units{{"abc\n", LineEnd::newline}});
    CHECK(cut({"abc", "\r", "\n"}, 3) == Units{{"abc\r\n", LineEnd::newline}});
}

TEST_CASE("memory is bounded by the limit, whatever is written") {
    LineCutter cutter(1000);
    for (int i = 0; i < 10'000; ++i) {
        cutter.feed(std::string(777, 'x'),
                    [](std::string_view unit, LineEnd) { CHECK(unit.size() <= 1001); });
        REQUIRE(cutter.unfinished().size() <= 1001);
    }
}

TEST_CASE("a smaller limit holds for what is already carried, too") {
    LineCutter cutter(10);
    Units units;
    const auto emit = [&](std::string_view unit, LineEnd end) {
        units.push_back({std::string(unit), end});
    };
    cutter.feed("12345678", emit);
    cutter.limit_to(4);
    cutter.feed("9abcdef\n", emit);
    CHECK(units ==
          Units{{"12345678", LineEnd::none}, {"9abc", LineEnd::none}, {"def\n", LineEnd::newline}});
}

TEST_CASE("text after a carriage return is a progress bar in the making") {
    LineCutter cutter(100);
    const auto ignore = [](std::string_view, LineEnd) {};
    cutter.feed("plain", ignore);
    CHECK_FALSE(cutter.unfinished_is_progress());
    cutter.feed("\r 10%", ignore);
    CHECK(cutter.unfinished_is_progress());
    CHECK(cutter.unfinished() == " 10%");
    cutter.feed("\n", ignore);
    CHECK_FALSE(cutter.unfinished_is_progress());
}

TEST_CASE("any text in any chunks is cut like a byte-by-byte reader would") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 3000; ++round) {
        std::string text;
        for (auto i = random() % 60; i > 0; --i) text += "ab\n\rcd"[random() % 6];
        const std::size_t limit = 1 + random() % 9;
        const Units expected = cut_slowly(text, limit);
        const auto chunks = split_anyhow(text, random, 1 + random() % 8);
        INFO("text '" << text << "' limit " << limit);
        REQUIRE(cut(chunks, limit) == expected);
    }
}
