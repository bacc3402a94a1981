#include "launcher/runtime/output/console_text.hpp"

#include "tests/support/catch.hpp"

#include <random>
#include <string>

using namespace ddrun::launcher;

namespace {

std::string take_all(ConsoleText& text) {
    const std::string all(text.front());
    text.taken(all.size());
    return all;
}

// What a terminal 200 columns wide shows after these bytes; rows are joined by '\n'.
std::string screen_after(const std::string& bytes) {
    std::string done, row;
    std::size_t column = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == '\n') {
            done += row + "\n";
            row.clear();
            column = 0;
        } else if (bytes[i] == '\r') {
            column = 0;
        } else if (bytes.compare(i, 3, "\x1b[K") == 0) {
            row.resize(column);
            i += 2;
        } else if (bytes.compare(i, 4, "\x1b[?7") == 0) {
            i += 4;
        } else {
            if (row.size() <= column) row.resize(column + 1);
            row[column++] = bytes[i];
        }
    }
    return done + row;
}

}  // namespace

TEST_CASE("lines and pieces are put together with their prefix") {
    ConsoleText text(1000, ProgressStyle::pass_on);
    text.line(1, "[0] ", "hello\n");
    text.piece(2, "[1] ", "no newline");
    CHECK(take_all(text) == "[0] hello\n[1] no newline\n");
    CHECK(text.size() == 0);
}

TEST_CASE("on a pipe a progress line keeps its \\r and nobody else's line is put behind it") {
    ConsoleText text(1000, ProgressStyle::pass_on);
    text.progress(1, "[0] ", "10%\r");
    text.progress(1, "[0] ", "20%\r");
    text.line(2, "[1] ", "hello\n");
    text.progress(1, "[0] ", "30%\r");
    text.line(1, "[0] ", "done\n");
    CHECK(take_all(text) == "[0] 10%\r[0] 20%\r\n[1] hello\n[0] 30%\r[0] done\n");
}

TEST_CASE("on a pipe a worker that ends after \\r leaves a finished line") {
    ConsoleText text(1000, ProgressStyle::pass_on);
    text.progress(1, "[0] ", "10%\r");
    text.settle(2);
    CHECK(take_all(text) == "[0] 10%\r");
    text.settle(1);
    text.settle(1);
    CHECK(take_all(text) == "\n");
}

TEST_CASE("on a terminal a progress line stays below the lines of others") {
    ConsoleText text(1000, ProgressStyle::redraw);
    std::string bytes;
    text.progress(1, "[0] ", "10% of a long bar\r");
    bytes += take_all(text);
    CHECK(screen_after(bytes) == "[0] 10% of a long bar");
    text.line(2, "[1] ", "hi\n");
    text.line(2, "[1] ", "ho\n");
    bytes += take_all(text);
    CHECK(screen_after(bytes) == "[1] hi\n[1] ho\n[0] 10% of a long bar");
    text.progress(1, "[0] ", "20%\r");
    bytes += take_all(text);
    CHECK(screen_after(bytes) == "[1] hi\n[1] ho\n[0] 20%");
    text.line(1, "[0] ", "done\n");
    bytes += take_all(text);
    CHECK(screen_after(bytes) == "[1] hi\n[1] ho\n[0] done\n");
}

TEST_CASE("on a terminal a bar in the making is shown, and taken over by its next state") {
    ConsoleText text(1000, ProgressStyle::redraw);
    std::string bytes;
    text.preview(1, "[0] ", " 10%\r");
    bytes += take_all(text);
    CHECK(screen_after(bytes) == "[0]  10%");
    text.progress(1, "[0] ", " 10%\r");
    CHECK(take_all(text).empty());
    text.preview(2, "[1] ", "not instead of another's");
    CHECK(take_all(text).empty());
    text.settle(1);
    bytes += take_all(text);
    CHECK(screen_after(bytes) == "[0]  10%\n");
    ConsoleText pipe(1000, ProgressStyle::pass_on);
    pipe.preview(1, "[0] ", " 10%");
    CHECK(pipe.size() == 0);
}

TEST_CASE("a lone \\r shows nothing, not even a prefix") {
    for (const auto style : {ProgressStyle::pass_on, ProgressStyle::redraw}) {
        ConsoleText text(1000, style);
        text.progress(1, "[0] ", "\r");
        CHECK(text.size() == 0);
    }
}

TEST_CASE("full from the limit on, until half of it is gone") {
    ConsoleText text(100, ProgressStyle::pass_on);
    CHECK(text.room() == 100);
    while (!text.full()) text.line(1, "", "123456789\n");
    CHECK(text.size() == 100);
    CHECK(text.room() == 0);
    text.taken(49);
    CHECK(text.full());
    text.taken(1);
    CHECK_FALSE(text.full());
}

TEST_CASE("bytes come out in order however they are taken") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    ConsoleText text(4u << 20, ProgressStyle::pass_on);
    std::string put, got;
    for (int i = 0; i < 4000; ++i) {
        const std::string line(random() % 3000, static_cast<char>('a' + i % 26));
        text.piece(1, "[0] ", line);
        put += "[0] " + line + "\n";
        const auto front = text.front();
        const auto size = random() % (front.size() + 1) / (i % 100 == 0 ? 1 : 3);
        got += front.substr(0, size);
        text.taken(size);
    }
    got += take_all(text);
    CHECK((got == put));
}
