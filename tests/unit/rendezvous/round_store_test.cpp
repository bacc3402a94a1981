#include "rendezvous/core/round_store.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace std::chrono_literals;

TEST_CASE("a round that ends while its store is being rebuilt is not answered from an empty one") {
    RoundStore store;
    store.recover(1, 2);
    CHECK(store.ask(0, {1, 0, StoreAdd{1, "n", 1}}, TimePoint(1s)).empty());
    const auto ended = store.abort("node n1 leaves");
    REQUIRE(ended.size() == 1);
    CHECK(std::get<StoreFailed>(ended[0].answered.reply).error == StoreError::aborted);
    const auto later = store.ask(0, {1, 0, StoreAdd{2, "n", 1}}, TimePoint(2s));
    REQUIRE(later.size() == 1);
    const auto* refused = std::get_if<StoreFailed>(&later[0].answered.reply);
    REQUIRE(refused != nullptr);
    CHECK(refused->error == StoreError::aborted);
    CHECK(refused->words == "node n1 leaves");
    // The next round has a store of its own.
    store.begin(2, 2);
    const auto fresh = store.ask(0, {2, 0, StoreAdd{3, "n", 1}}, TimePoint(3s));
    REQUIRE(fresh.size() == 1);
    CHECK(std::get<StoreNumber>(fresh[0].answered.reply).value == 1);
}
