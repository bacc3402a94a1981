// What a node knows of its round's store, to tell a server that starts empty.

#include "rendezvous/core/store_memory.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <optional>
#include <string>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint start = TimePoint{} + 1h;

// Round 1; requests get the ids 1, 2, ... and are of rank 0 unless another is named.
class Story {
  public:
    Story() { memory.begin_round(1); }

    StoreError asks(FromWorker request, std::int32_t rank = 0) {
        ++tickets_;
        return memory.asked(std::make_shared<const ToJob>(StoreAsked{1, rank, std::move(request)}),
                            tickets_, start);
    }
    bool answered(ToWorker reply, std::uint64_t writes = 0, bool wrote = false,
                  std::int32_t rank = 0) {
        return memory.answered(StoreAnswered{1, rank, writes, wrote, std::move(reply)});
    }
    void sets(std::uint64_t id, const std::string& key, Bytes value, std::uint64_t writes) {
        REQUIRE(asks(StoreSet{id, key, std::move(value)}) == StoreError::none);
        REQUIRE(answered(StoreDone{id}, writes, true));
    }
    [[nodiscard]] std::optional<KnownKey> known(const std::string& key) const {
        for (const PresentKeys& part : memory.present())
            for (const KnownKey& one : part.keys)
                if (one.key == key) return one;
        return std::nullopt;
    }
    [[nodiscard]] std::vector<PassedGathering> passed() const {
        return memory.present().front().passed;
    }

    StoreMemory memory;

  private:
    Ticket tickets_ = 0;
};

}  // namespace

TEST_CASE("answers teach values, how often they were written, and by whom") {
    Story story;
    story.sets(1, "k", "v", 1);
    CHECK(story.known("k") == KnownKey{"k", "v", false, 1, 1});

    (void)story.asks(StoreGet{2, "k", 100});
    CHECK(story.answered(StoreValue{2, "by another node"}, 2));
    CHECK(story.known("k") == KnownKey{"k", "by another node", false, 2, 1});

    (void)story.asks(StoreAdd{3, "n", 5});
    CHECK(story.answered(StoreNumber{3, 12}, 4, true));
    CHECK(story.known("n") == KnownKey{"n", "12", false, 4, 1});

    (void)story.asks(StoreDelete{4, "k"});
    CHECK(story.answered(StoreNumber{4, 1}, 3, true));
    CHECK(story.known("k") == KnownKey{"k", "", true, 3, 2});
}

TEST_CASE("a compare-set teaches what is there now, written or not") {
    Story story;
    (void)story.asks(StoreCompareSet{1, "k", "a", "b"});
    CHECK(story.answered(StoreValue{1, "other"}, 2, false));
    CHECK(story.known("k") == KnownKey{"k", "other", false, 2, 0});
    (void)story.asks(StoreCompareSet{2, "k", "other", "b"});
    CHECK(story.answered(StoreValue{2, "b"}, 3, true));
    CHECK(story.known("k") == KnownKey{"k", "b", false, 3, 1});
    // Nothing is there, or an empty value: the answer does not say.
    (void)story.asks(StoreCompareSet{3, "absent", "a", "b"});
    CHECK(story.answered(StoreValue{3, ""}, 1, false));
    CHECK_FALSE(story.known("absent").has_value());
}

TEST_CASE("an older answer does not undo a newer one") {
    Story story;
    story.sets(1, "k", "new", 7);
    (void)story.asks(StoreGet{2, "k", 100});
    CHECK(story.answered(StoreValue{2, "old"}, 6));
    CHECK(story.known("k") == KnownKey{"k", "new", false, 7, 1});
}

TEST_CASE("a multi-get teaches only what nothing else taught") {
    Story story;
    story.sets(1, "k", "v", 3);
    (void)story.asks(StoreMultiGet{2, {"k", "l"}, 100});
    CHECK(story.answered(StoreValues{2, {"older", "w"}}));
    CHECK(story.known("k") == KnownKey{"k", "v", false, 3, 1});
    CHECK(story.known("l") == KnownKey{"l", "w", false, 0, 0});
}

TEST_CASE("failures teach nothing, and nobody waits twice") {
    Story story;
    (void)story.asks(StoreSet{1, "k", "v"});
    CHECK(story.answered(StoreFailed{1, StoreError::full, "full"}));
    CHECK_FALSE(story.known("k").has_value());
    CHECK_FALSE(story.answered(StoreDone{1}, 1, true));
    CHECK_FALSE(story.answered(StoreDone{9}, 1, true));
    CHECK_FALSE(story.memory.answered(StoreAnswered{2, 0, 1, true, StoreDone{1}}));
}

TEST_CASE("barriers and all-gathers are counted by rank; the last values are kept once") {
    Story story;
    for (const std::int32_t rank : {0, 1}) {
        (void)story.asks(StoreBarrier{1, "b", 0, 100}, rank);
        (void)story.asks(StoreAllGather{2, "g", 0, "mine", 100}, rank);
    }
    CHECK(story.answered(StoreDone{1}, 0, false, 0));
    CHECK(story.answered(StoreValues{2, {"x", "y"}}, 0, false, 0));
    CHECK(story.answered(StoreValues{2, {"x", "y"}}, 0, false, 1));
    (void)story.asks(StoreBarrier{3, "b", 0, 100}, 0);
    CHECK(story.answered(StoreDone{3}, 0, false, 0));
    CHECK(story.passed() == std::vector<PassedGathering>{{false, "b", 0, 2, {}},
                                                         {true, "g", 0, 1, {"x", "y"}},
                                                         {true, "g", 1, 1, {}}});
}

TEST_CASE("requests without an answer are kept in order, with what is left of their time-outs") {
    Story story;
    (void)story.asks(StoreGet{9, "late", 5000}, 3);
    (void)story.asks(StoreGet{8, "at once", 0}, 2);
    (void)story.asks(StoreGet{7, "due", 1000}, 1);
    (void)story.asks(StoreAdd{6, "n", 1}, 1);
    const auto open = story.memory.open_requests(start + 2s);
    std::vector<FromWorker> requests;
    for (const auto& [ticket, kept] : open) requests.push_back(std::get<StoreAsked>(*kept).request);
    CHECK(requests == std::vector<FromWorker>{StoreGet{9, "late", 3000}, StoreGet{8, "at once", 0},
                                              StoreGet{7, "due", 1}, StoreAdd{6, "n", 1}});
}

TEST_CASE("the requests of a worker that is gone are forgotten") {
    Story story;
    (void)story.asks(StoreGet{1, "k", 5000}, 1);
    (void)story.asks(StoreGet{1, "k", 5000}, 2);
    (void)story.asks(StoreGet{2, "k", 5000}, 2);
    (void)story.asks(StoreGet{1, "k", 5000}, 3);
    story.memory.forget(2);
    CHECK(story.memory.open() == 2);
    CHECK_FALSE(story.answered(StoreValue{1, "v"}, 1, false, 2));
    CHECK(story.answered(StoreValue{1, "v"}, 1, false, 3));
}

TEST_CASE("an abort answers what is open, in the order it was asked") {
    Story story;
    (void)story.asks(StoreGet{5, "k", 5000}, 2);
    (void)story.asks(StoreGet{4, "k", 5000}, 1);
    const auto answers = story.memory.abort("rank 7 died");
    CHECK(answers == std::vector<StoreAnswered>{
                         {1, 2, 0, false, StoreFailed{5, StoreError::aborted, "rank 7 died"}},
                         {1, 1, 0, false, StoreFailed{4, StoreError::aborted, "rank 7 died"}}});
    CHECK(story.memory.open() == 0);
}

TEST_CASE("what must not be sent is told apart") {
    Story story;
    CHECK(story.asks(StoreGet{1, "k", 5000}) == StoreError::none);
    CHECK(story.asks(StoreGet{1, "k", 5000}) == StoreError::mismatch);
    const auto old = std::make_shared<const ToJob>(StoreAsked{7, 0, StoreGet{2, "k", 0}});
    CHECK(story.memory.asked(old, 99, start) == StoreError::aborted);
}

TEST_CASE("a new round knows nothing of the old one") {
    Story story;
    story.sets(1, "k", "v", 1);
    (void)story.asks(StoreGet{2, "l", 5000});
    story.memory.begin_round(2);
    CHECK_FALSE(story.known("k").has_value());
    CHECK(story.memory.open() == 0);
    CHECK(story.memory.present().front().round == 2);
}

// --- bounds -------------------------------------------------------------------------------------

TEST_CASE("requests on their way are bounded") {
    Story story;
    const Bytes large(max_asked_bytes / 2, 'x');
    CHECK(story.asks(StoreSet{1, "a", large}) == StoreError::none);
    CHECK(story.asks(StoreSet{2, "b", large}) == StoreError::full);
    CHECK(story.answered(StoreDone{1}, 1, true));
    CHECK(story.asks(StoreSet{3, "b", large}) == StoreError::none);
}

TEST_CASE("known values are bounded: what does not fit is unknown and counted") {
    Story story;
    const Bytes large(max_known_bytes * 2 / 3, 'x');
    story.sets(1, "a", large, 1);
    story.sets(2, "b", large, 1);
    CHECK(story.memory.unknown() == 1);
    CHECK(story.known("a").has_value());
    CHECK_FALSE(story.known("b").has_value());
    story.sets(3, "a", "small", 2);
    story.sets(4, "b", large, 2);
    CHECK(story.known("b").has_value());
}

TEST_CASE("gatherings used longest ago make room") {
    Story story;
    for (std::uint64_t i = 0; i <= max_known_gatherings; ++i) {
        (void)story.asks(StoreBarrier{i, "b" + std::to_string(i), 0, 100});
        CHECK(story.answered(StoreDone{i}));
    }
    std::size_t known = 0;
    bool first = false;
    for (const PresentKeys& part : story.memory.present()) {
        known += part.passed.size();
        for (const PassedGathering& one : part.passed) first = first || one.name == "b0";
    }
    CHECK(known == max_known_gatherings);
    CHECK_FALSE(first);

    (void)story.asks(StoreAllGather{1'000'000, "g", 0, "", 100});
    CHECK(story.answered(StoreValues{1'000'000, {Bytes(max_known_bytes, 'x')}}));
    CHECK(story.memory.unknown() == 0);
}

TEST_CASE("all that is known goes out in parts of bounded size, the last one marked") {
    Story story;
    for (std::uint64_t i = 1; i <= 100; ++i)
        story.sets(i, "k" + std::to_string(i), Bytes(100'000, 'x'), 1);
    story.sets(101, "large", Bytes(5'000'000, 'x'), 1);
    const auto parts = story.memory.present();
    std::size_t keys = 0;
    for (const PresentKeys& part : parts) {
        keys += part.keys.size();
        CHECK((part.keys.size() == 1 || part.keys.size() <= 11));
        CHECK(part.last == (&part == &parts.back()));
        CHECK(part.round == 1);
    }
    CHECK(keys == 101);
    CHECK(StoreMemory().present().size() == 1);
}
