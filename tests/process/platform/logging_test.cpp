#include "rendezvous/platform/logging.hpp"

#include "tests/support/catch.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ddrun::detail;

namespace {

constexpr Logger log_of_test("some part");

struct Captured {
    std::vector<std::string> lines;
    explicit Captured(LogLevel level) {
        set_up_logging({level, [this](std::string line) { lines.push_back(std::move(line)); }});
    }
    ~Captured() { set_up_logging({}); }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
};

bool ends_with(const std::string& line, const std::string& end) {
    return line.size() >= end.size() &&
           line.compare(line.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

TEST_CASE("a log line carries level and name and has no newline") {
    Captured captured(LogLevel::info);
    log_of_test.info("the keeper is up");
    REQUIRE(captured.lines.size() == 1);
    CHECK(captured.lines[0].rfind("ddrun ", 0) == 0);
    CHECK(ends_with(captured.lines[0], "info some part: the keeper is up"));
}

TEST_CASE("braces and percent signs in a log line are only text") {
    Captured captured(LogLevel::info);
    log_of_test.warning("{} %s {0:>10}");
    REQUIRE(captured.lines.size() == 1);
    CHECK(ends_with(captured.lines[0], "{} %s {0:>10}"));
}

TEST_CASE("lines below the level are dropped and their text is never made") {
    Captured captured(LogLevel::info);
    bool made = false;
    log_of_test.debug([&] {
        made = true;
        return std::string("expensive");
    });
    log_of_test.trace("quiet");
    CHECK_FALSE(made);
    CHECK(captured.lines.empty());

    set_up_logging({LogLevel::off, {}});
    log_of_test.error("nobody listens");
    CHECK(captured.lines.empty());
    CHECK_FALSE(logs(LogLevel::off));
}

TEST_CASE("a sink that throws does not reach the one who logs") {
    set_up_logging({LogLevel::info, [](std::string) { throw std::runtime_error("no"); }});
    log_of_test.info("still alive");
    set_up_logging({});
}

TEST_CASE("lines of several threads come one at a time") {
    Captured captured(LogLevel::info);
    const auto many = [] {
        for (int i = 0; i < 200; ++i) log_of_test.info("line");
    };
    std::thread other(many);
    many();
    other.join();
    CHECK(captured.lines.size() == 400);
}
