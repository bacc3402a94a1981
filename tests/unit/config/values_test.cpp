#include "launcher/config/values.hpp"

#include "launcher/config/base64.hpp"
#include "launcher/config/suggest.hpp"
#include "tests/support/catch.hpp"

#include <random>

using namespace ddrun;
using namespace ddrun::launcher;
using namespace std::chrono_literals;

namespace {

Duration duration(std::string_view text) {
    Duration value{-1};
    static_cast<void>(values::read(text, value));
    return value;
}

StreamMap streams(std::string_view text) {
    StreamMap map;
    INFO(text);
    CHECK_FALSE(values::read(text, map));
    return map;
}

PrefixCommand prefix(std::string_view text) {
    PrefixCommand command;
    INFO(text);
    CHECK_FALSE(values::read(text, command));
    return command;
}

}  // namespace

TEST_CASE("durations have units; a bare number is seconds") {
    CHECK(duration("500ms") == 500ms);
    CHECK(duration("10s") == 10s);
    CHECK(duration("5m") == 5min);
    CHECK(duration("1h") == 1h);
    CHECK(duration("30") == 30s);
    CHECK(duration("0.1") == 100ms);
    CHECK(duration("1.5h") == 90min);
    CHECK(duration("0.999999999h") == 3'599'999'996'400ns);
    CHECK(duration("0.000000001") == 1ns);
    CHECK(duration("8760h") == 8760h);
    CHECK(duration("0") == 0ns);
}

TEST_CASE("a written duration reads back the same") {
    CHECK(values::write(Duration(500ms)) == "500ms");
    CHECK(values::write(Duration(90s)) == "90s");
    CHECK(values::write(Duration(120s)) == "2m");
    CHECK(values::write(Duration(0ns)) == "0s");
    std::mt19937_64 random(7);
    for (int i = 0; i < 1000; ++i) {
        const Duration value(static_cast<std::int64_t>(random() % 10'000'000'000'000));
        CHECK(duration(values::write(value)) == value);
    }
}

TEST_CASE("torchrun weakness 36: ranks of more than one digit, and ranges") {
    const StreamMap map = streams("0-7:3,12:1");
    CHECK(map.for_rank(0) == Streams::both);
    CHECK(map.for_rank(7) == Streams::both);
    CHECK(map.for_rank(8) == Streams::none);
    CHECK(map.for_rank(12) == Streams::out);
    CHECK(streams("10:1").for_rank(10) == Streams::out);
    CHECK(streams("2").for_rank(99) == Streams::err);
}

TEST_CASE("ranges without a value share the next one") {
    CHECK(streams("0-7,12:1") == streams("0-7:1,12:1"));
    CHECK(streams("1,2,3:2,4:1").for_rank(1) == Streams::err);
    CHECK(values::write(streams("0-7,12:1")) == "0-7:1,12:1");
}

TEST_CASE("a prefix command is cut like a shell does, without expansion") {
    CHECK(prefix("0:gdb --args").words == std::vector<std::string>{"gdb", "--args"});
    CHECK(prefix("0:gdb --args").ranks.ranges == std::vector<RankRange>{{0, 0}});
    CHECK(prefix("all:strace").ranks.ranges.empty());
    CHECK(prefix("0-3,7: a 'b c' \"d \\\" e\" f\\ g '' $HOME").words ==
          std::vector<std::string>{"a", "b c", "d \" e", "f g", "", "$HOME"});
}

TEST_CASE("a written prefix command reads back the same") {
    for (const char* text :
         {"0:gdb --args", "all:a 'b c'", "1-2,5:x 'it'\\''s' '' $A \\\\ \"q\\x\""}) {
        const PrefixCommand command = prefix(text);
        CHECK(prefix(values::write(command)) == command);
    }
}

TEST_CASE("ADDR-6 an IPv6 address with a port stands in brackets") {
    values::Endpoint endpoint;
    REQUIRE_FALSE(values::read("[fd00:9::1]:29400", endpoint));
    CHECK(endpoint.host == "fd00:9::1");
    CHECK(endpoint.port == 29400);
    REQUIRE_FALSE(values::read("fd00:9::1", endpoint));
    CHECK(endpoint.host == "fd00:9::1");
    CHECK_FALSE(endpoint.port);
    CHECK(values::read("fd00:9::1:29400", endpoint) ==
          "write an IPv6 address with a port as [addr]:port");
}

TEST_CASE("ADDR-8 an empty host is a variable that was not set") {
    values::Endpoint endpoint;
    CHECK(values::read(":29400", endpoint) == "the host is empty; was a variable unset?");
}

TEST_CASE("RES-1 device names are kept verbatim") {
    std::optional<std::string> gpus;
    for (const char* text :
         {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-1", "MIG-cfb2a8ae", " 2, 3 "}) {
        REQUIRE_FALSE(values::read_gpus(text, gpus));
        CHECK(gpus == text);
    }
}

TEST_CASE("lists hold commas by doubling them") {
    CHECK(values::split_list("a,b") == std::vector<std::string>{"a", "b"});
    CHECK(values::split_list("a,,b,c") == std::vector<std::string>{"a,b", "c"});
    CHECK(values::join_list({"a,b", "c"}) == "a,,b,c");
    CHECK(values::split_list("") == std::vector<std::string>{""});
}

TEST_CASE("quoting for a shell") {
    CHECK(values::shell_quoted("./train") == "./train");
    CHECK(values::shell_quoted("") == "''");
    CHECK(values::shell_quoted("I'm $x") == "'I'\\''m $x'");
}

TEST_CASE("base64 both ways, and nothing else is base64") {
    for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\x80\x01"}) {
        CHECK(decode_base64(encode_base64(text)) == text);
    }
    CHECK(encode_base64("\xff") == "/w==");
    CHECK(decode_base64(" /w\n== ") == "\xff");
    for (const char* text :
         {"/", "/w", "/w=", "/w==/w==", "=", "====", "/===", "\xac\xac\xac\xac", "a-b_"}) {
        CAPTURE(text);
        CHECK_FALSE(decode_base64(text));
    }
}

TEST_CASE("the nearest name: begun, then mistyped, then none") {
    const std::vector<std::string_view> names = {"tee", "redirects", "nproc-per-node"};
    CHECK(nearest("nproc", names) == "nproc-per-node");
    CHECK(nearest("redirect", names) == "redirects");
    CHECK(nearest("rediercts", names) == "redirects");
    CHECK(nearest("te", names) == "tee");
    CHECK_FALSE(nearest("zzz", names));
    CHECK_FALSE(nearest("", names));
    CHECK_FALSE(nearest(std::string(10'000, 't'), names));
}
