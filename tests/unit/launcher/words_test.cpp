#include "launcher/core/words.hpp"

#include "launcher/core/job_spec.hpp"
#include "tests/support/catch.hpp"

using namespace ddrun::launcher;
using namespace std::chrono_literals;

TEST_CASE("ranks are written as ranges") {
    CHECK(rank_list({}) == "no rank");
    CHECK(rank_list({3}) == "rank 3");
    CHECK(rank_list({3, 2}) == "ranks 2-3");
    CHECK(rank_list({7, 0, 1, 2, 5, 5, 6}) == "ranks 0-2, 5-7");
    CHECK(rank_list({0, 2, 4}) == "ranks 0, 2, 4");
}

TEST_CASE("durations have as few digits as a reader wants") {
    CHECK(duration_text(0s) == "0 ms");
    CHECK(duration_text(12ms) == "12 ms");
    CHECK(duration_text(200ms) == "0.2 s");
    CHECK(duration_text(1s) == "1 s");
    CHECK(duration_text(1040ms) == "1 s");
    CHECK(duration_text(9949ms) == "9.9 s");
    CHECK(duration_text(9960ms) == "10 s");
    CHECK(duration_text(30s) == "30 s");
    CHECK(duration_text(10min) == "10 min");
    CHECK(duration_text(150min) == "2.5 h");
}

TEST_CASE("sizes are written in binary units") {
    CHECK(size_text(0) == "0 bytes");
    CHECK(size_text(64LL << 20) == "64 MiB");
    CHECK(size_text(3LL << 29) == "1.5 GiB");
}

TEST_CASE("a worker's line as plain text: no colours, the last state of a progress bar") {
    CHECK(plain_text("plain ü text\twith tab") == "plain ü text\twith tab");
    CHECK(plain_text("\x1b[1;31mError\x1b[0m: x") == "Error: x");
    CHECK(plain_text(" 10%\r 50%\r100%\r") == "100%");
    CHECK(plain_text("bell\a, cut \x1b[31") == "bell, cut ");
    CHECK(plain_text("odd \x1b") == "odd ");
    CHECK(plain_text("").empty());
    CHECK(plain_text("\r\n").empty());
}

TEST_CASE("text is cut at its line ends") {
    CHECK(lines_of("").empty());
    CHECK(lines_of("a") == std::vector<std::string>{"a"});
    CHECK(lines_of("a\n\nb\n") == std::vector<std::string>{"a", "", "b"});
}

TEST_CASE("counts agree with their noun") {
    CHECK(counted(1, "worker") == "1 worker");
    CHECK(counted(0, "worker") == "0 workers");
}

TEST_CASE("a stream map gives the last range that names the rank, else the common value") {
    StreamMap map{Streams::out, {{{0, 15}, Streams::both}, {{12, 12}, Streams::err}}};
    CHECK(map.for_rank(0) == Streams::both);
    CHECK(map.for_rank(12) == Streams::err);
    CHECK(map.for_rank(16) == Streams::out);
}

TEST_CASE("an empty rank set means all ranks") {
    CHECK(RankSet{}.contains(4096));
    const RankSet some{{{2, 3}, {10, 10}}};
    CHECK(some.contains(3));
    CHECK(some.contains(10));
    CHECK_FALSE(some.contains(4));
}
