#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/store_story.hpp"

using namespace ddrun::testing;
using Values = std::vector<std::string>;

TEST_CASE("a barrier opens when the last of the world has come") {
    StoreStory store(3);
    const auto a = store.barrier(2, "b"), b = store.barrier(0, "b");
    CHECK(store.waits(a));
    const auto c = store.barrier(1, "b");
    for (const auto id : {a, b, c}) CHECK(store.answer<StoreDone>(id).id == id);
    CHECK(store.idle());
}

TEST_CASE("a barrier can be used again, also by the same ranks at once") {
    StoreStory store(2);
    (void)store.barrier(0, "b");
    (void)store.barrier(1, "b");
    const auto again = store.barrier(1, "b");
    CHECK(store.waits(again));
    (void)store.barrier(0, "b");
    CHECK_FALSE(store.waits(again));
}

TEST_CASE("barriers of different names, and a barrier and an all-gather of one name, are apart") {
    StoreStory store(2);
    const auto b = store.barrier(0, "x"), c = store.barrier(1, "y");
    const auto g = store.all_gather(1, "x", "v");
    for (const auto id : {b, c, g}) CHECK(store.waits(id));
}

TEST_CASE("an all-gather answers the values by rank") {
    StoreStory store(3);
    const auto a = store.all_gather(2, "g", "two"), b = store.all_gather(0, "g", "zero"),
               c = store.all_gather(1, "g", "");
    for (const auto id : {a, b, c}) {
        CHECK(store.answer<StoreValues>(id).values == Values{"zero", "", "two"});
    }
}

TEST_CASE("a barrier of fewer ranks opens for any of them") {
    StoreStory store(8);
    const auto a = store.barrier(7, "b", 2), b = store.barrier(3, "b", 2);
    CHECK_FALSE(store.waits(a));
    CHECK_FALSE(store.waits(b));
}

TEST_CASE("a world of one passes every barrier alone") {
    StoreStory store(1);
    CHECK(store.answer<StoreDone>(store.barrier(0, "b", 0, 0)).id == 1);
    CHECK(store.answer<StoreValues>(store.all_gather(0, "g", "v", 0)).values == Values{"v"});
}

TEST_CASE("a barrier that times out names the ranks that never came") {
    StoreStory store(4);
    const auto id = store.barrier(1, "epoch", 0, 1000);
    (void)store.barrier(3, "epoch", 0, 5000);
    store.passes(1s);
    CHECK(store.error(id) == StoreError::timed_out);
    CHECK(store.words(id) == "timed out: barrier 'epoch': 2 of 4 came; missing: ranks 0 and 2");
}

TEST_CASE("ranks that came and gave up are told apart from those that never came") {
    StoreStory store(3);
    (void)store.barrier(0, "b", 0, 1000);
    const auto id = store.barrier(1, "b", 0, 2000);
    store.passes(2s);
    CHECK(store.words(id) ==
          "timed out: barrier 'b': 2 of 3 came; missing: rank 2; came and left again: rank 0");
}

TEST_CASE("many missing ranks are counted, not listed") {
    StoreStory store(100);
    const auto id = store.barrier(0, "b", 0, 0);
    CHECK(
        store.words(id) ==
        "timed out: barrier 'b': 1 of 100 came; missing: ranks 1, 2, 3, 4, 5, 6, 7, 8 and 91 more");
}

TEST_CASE("a rank that gave up may come again") {
    StoreStory store(2);
    const auto early = store.barrier(0, "b", 0, 10);
    store.passes(10ms);
    CHECK(store.error(early) == StoreError::timed_out);
    const auto other = store.barrier(1, "b"), again = store.barrier(0, "b");
    CHECK_FALSE(store.waits(other));
    CHECK_FALSE(store.waits(again));
}

TEST_CASE("a rank that went away does not count") {
    StoreStory store(2);
    (void)store.all_gather(0, "g", "old");
    store.forget(0);
    const auto other = store.all_gather(1, "g", "other");
    CHECK(store.waits(other));
    (void)store.all_gather(0, "g", "new");
    CHECK(store.answer<StoreValues>(other).values == Values{"new", "other"});
}

TEST_CASE("disagreement about a barrier is an error for the one who comes later") {
    StoreStory store(4);
    const auto first = store.barrier(0, "b", 2);
    const auto other_size = store.barrier(1, "b", 3), twice = store.barrier(0, "b", 2),
               too_many = store.barrier(1, "c", 5);
    CHECK(store.error(other_size) == StoreError::mismatch);
    CHECK(store.words(other_size) == "barrier 'b': rank 1 came for 3 ranks, others for 2");
    CHECK(store.error(twice) == StoreError::mismatch);
    CHECK(store.words(twice) == "barrier 'b': rank 0 is already waiting there");
    CHECK(store.error(too_many) == StoreError::mismatch);
    CHECK(store.waits(first));
    (void)store.barrier(1, "b", 2);
    CHECK_FALSE(store.waits(first));
}

TEST_CASE("a size that is the world is the world") {
    StoreStory store(2);
    const auto a = store.barrier(0, "b", 0), b = store.barrier(1, "b", 2);
    CHECK_FALSE(store.waits(a));
    CHECK_FALSE(store.waits(b));
}

TEST_CASE("an all-gather too large for one answer fails for all") {
    StoreStory store(2);
    const std::string half(max_frame_bytes / 2, 'v');
    const auto a = store.all_gather(0, "g", half), b = store.all_gather(1, "g", half);
    CHECK(store.error(a) == StoreError::too_large);
    CHECK(store.error(b) == StoreError::too_large);
}

TEST_CASE("values that wait in all-gathers are bounded together with the keys") {
    StoreStory store(100);
    const std::string fifth(max_store_bytes / 5, 'v');
    for (int rank = 0; rank < 4; ++rank) CHECK(store.waits(store.all_gather(rank, "g", fifth)));
    CHECK(store.error(store.all_gather(4, "g", fifth + fifth)) == StoreError::full);
    store.forget(0);
    store.forget(1);
    CHECK(store.waits(store.all_gather(5, "g", fifth)));
}
