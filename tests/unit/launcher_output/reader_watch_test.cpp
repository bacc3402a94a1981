#include "launcher/runtime/output/reader_watch.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace std::chrono_literals;
using Event = ReaderWatch::Event;
using Change = ReaderWatch::Change;

namespace {

TimePoint at(Duration since_start) {
    return TimePoint{} + 100s + since_start;
}

}  // namespace

TEST_CASE("a reader that takes nothing for the patience is given up") {
    ReaderWatch watch(5s);
    CHECK_FALSE(watch.next_deadline());
    CHECK(watch.step(Event::refused, at(0s)) == Change::none);
    CHECK(watch.next_deadline() == at(5s));
    CHECK(watch.step(Event::refused, at(3s)) == Change::none);
    CHECK(watch.advance_to(at(4999ms)) == Change::none);
    CHECK_FALSE(watch.given_up());
    CHECK(watch.advance_to(at(5s)) == Change::gave_up);
    CHECK(watch.given_up());
    CHECK_FALSE(watch.next_deadline());
    CHECK(watch.advance_to(at(50s)) == Change::none);
}

TEST_CASE("a slow reader is waited for as long as it moves") {
    ReaderWatch watch(5s);
    for (int i = 0; i < 100; ++i) {
        const auto now = at(i * 4s);
        CHECK(watch.step(Event::took, now) == Change::none);
        CHECK(watch.step(Event::refused, now) == Change::none);
        CHECK(watch.advance_to(now + 4s) == Change::none);
    }
    CHECK_FALSE(watch.given_up());
}

TEST_CASE("a reader that moves again is trusted again") {
    ReaderWatch watch(5s);
    CHECK(watch.step(Event::refused, at(0s)) == Change::none);
    CHECK(watch.advance_to(at(5s)) == Change::gave_up);
    CHECK(watch.step(Event::refused, at(6s)) == Change::none);
    CHECK(watch.step(Event::took, at(60s)) == Change::moves_again);
    CHECK_FALSE(watch.given_up());
    CHECK(watch.step(Event::refused, at(60s)) == Change::none);
    CHECK(watch.next_deadline() == at(65s));
}

TEST_CASE("LOG-7: a full disk is not waited for") {
    ReaderWatch watch(5s);
    CHECK(watch.step(Event::failed, at(0s)) == Change::gave_up);
    CHECK(watch.step(Event::failed, at(1s)) == Change::none);
    CHECK(watch.step(Event::took, at(2s)) == Change::moves_again);
    CHECK(watch.step(Event::took, at(3s)) == Change::none);
}
