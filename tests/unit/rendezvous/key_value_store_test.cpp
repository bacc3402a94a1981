#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/store_story.hpp"

using namespace ddrun::testing;

TEST_CASE("what is set can be got") {
    StoreStory store;
    CHECK(store.answer<StoreDone>(store.set(0, "k", "v")).id == 1);
    CHECK(store.value(store.get(1, "k")) == "v");
    (void)store.set(0, "k", "");
    CHECK(store.value(store.get(1, "k")).empty());
}

TEST_CASE("get without time-out of an absent key fails at once") {
    StoreStory store;
    const auto id = store.get(0, "k");
    CHECK(store.error(id) == StoreError::timed_out);
    CHECK(store.words(id) == "timed out: key 'k' is not there");
}

TEST_CASE("get waits until the key exists, however it comes to be") {
    StoreStory store;
    const auto by_set = store.get(1, "a", 1000);
    const auto by_add = store.get(1, "b", 1000);
    const auto by_swap = store.get(1, "c", 1000);
    CHECK(store.waits(by_set));
    (void)store.set(0, "a", "1");
    (void)store.asks(0, StoreAdd{0, "b", 2});
    (void)store.asks(0, StoreCompareSet{0, "c", "", "3"});
    CHECK(store.value(by_set) == "1");
    CHECK(store.value(by_add) == "2");
    CHECK(store.value(by_swap) == "3");
    CHECK(store.idle());
}

TEST_CASE("a wait ends at its time-out, not before") {
    StoreStory store;
    const auto id = store.get(0, "k", 1000);
    store.passes(999ms);
    CHECK(store.waits(id));
    store.passes(1ms);
    CHECK(store.error(id) == StoreError::timed_out);
    CHECK(store.idle());
}

TEST_CASE("all who wait for a key are answered") {
    StoreStory store;
    const auto first = store.get(0, "k", 1000), second = store.get(1, "k", 2000);
    (void)store.set(2, "k", "v");
    CHECK(store.value(first) == "v");
    CHECK(store.value(second) == "v");
}

TEST_CASE("add counts from 0 and answers the sum") {
    StoreStory store;
    CHECK(store.answer<StoreNumber>(store.asks(0, StoreAdd{0, "n", 5})).value == 5);
    CHECK(store.answer<StoreNumber>(store.asks(1, StoreAdd{0, "n", -7})).value == -2);
    CHECK(store.value(store.get(0, "n")) == "-2");
}

TEST_CASE("add to what is no number, or beyond 64 bits, fails and changes nothing") {
    StoreStory store;
    (void)store.set(0, "text", "12a");
    CHECK(store.error(store.asks(0, StoreAdd{0, "text", 1})) == StoreError::not_a_number);
    CHECK(store.value(store.get(0, "text")) == "12a");
    (void)store.set(0, "n", "9223372036854775807");
    CHECK(store.error(store.asks(0, StoreAdd{0, "n", 1})) == StoreError::not_a_number);
    CHECK(store.value(store.get(0, "n")) == "9223372036854775807");
}

TEST_CASE("compare-set sets on a match and answers what is there") {
    StoreStory store;
    const auto swap = [&](const std::string& expected, const std::string& desired) {
        return store.value(store.asks(0, StoreCompareSet{0, "k", expected, desired}));
    };
    CHECK(swap("x", "1").empty());
    CHECK(store.error(store.get(0, "k")) == StoreError::timed_out);
    CHECK(swap("", "1") == "1");
    CHECK(swap("", "2") == "1");
    CHECK(swap("x", "2") == "1");
    CHECK(swap("1", "2") == "2");
}

TEST_CASE("delete answers how many keys went") {
    StoreStory store;
    (void)store.set(0, "k", "v");
    CHECK(store.answer<StoreNumber>(store.asks(0, StoreDelete{0, "k"})).value == 1);
    CHECK(store.answer<StoreNumber>(store.asks(0, StoreDelete{0, "k"})).value == 0);
    CHECK(store.error(store.get(0, "k")) == StoreError::timed_out);
}

TEST_CASE("multi-get waits for all keys and answers in the order asked") {
    StoreStory store;
    const auto id = store.asks(1, StoreMultiGet{0, {"b", "a", "b"}, 1000});
    (void)store.set(0, "a", "1");
    CHECK(store.waits(id));
    (void)store.set(0, "b", "2");
    CHECK(store.answer<StoreValues>(id).values == std::vector<std::string>{"2", "1", "2"});
    CHECK(store.answer<StoreValues>(store.asks(1, StoreMultiGet{0, {}, 0})).values.empty());
}

TEST_CASE("multi-get needs all keys at the same time") {
    StoreStory store;
    const auto id = store.asks(1, StoreMultiGet{0, {"a", "b"}, 1000});
    (void)store.set(0, "a", "1");
    (void)store.asks(0, StoreDelete{0, "a"});
    (void)store.set(0, "b", "2");
    CHECK(store.waits(id));
    (void)store.set(0, "a", "3");
    CHECK(store.answer<StoreValues>(id).values == std::vector<std::string>{"3", "2"});
}

TEST_CASE("multi-get that times out names what is missing") {
    StoreStory store;
    (void)store.set(0, "b", "");
    const auto id = store.asks(1, StoreMultiGet{0, {"a", "b", "c"}, 0});
    CHECK(store.words(id) == "timed out: key 'a' and 1 more are not there");
}

TEST_CASE("a client that went away is forgotten, others are not") {
    StoreStory store;
    const auto gone = store.get(1, "k", 1000), stays = store.get(2, "k", 1000);
    store.forget(1);
    (void)store.set(0, "k", "v");
    CHECK(store.waits(gone));
    CHECK(store.value(stays) == "v");
    store.passes(1h);
    CHECK(store.waits(gone));
}

TEST_CASE("after an abort every wait ends, now and later; what is there can still be read") {
    StoreStory store;
    const auto get = store.get(1, "k", 1000), barrier = store.barrier(2, "b");
    store.abort("rank 3 was killed by SIGSEGV");
    for (const auto id : {get, barrier, store.get(0, "k", 1000), store.barrier(0, "b"),
                          store.all_gather(0, "g", "v")}) {
        CHECK(store.error(id) == StoreError::aborted);
        CHECK(store.words(id) == "rank 3 was killed by SIGSEGV");
    }
    (void)store.set(0, "k", "v");
    CHECK(store.value(store.get(0, "k", 1000)) == "v");
    CHECK(store.idle());
}

TEST_CASE("messages that are not for the store get no answer") {
    StoreStory store;
    KeyValueStore plain(1);
    for (const FromWorker& message :
         {FromWorker(WorkerHello{}), FromWorker(ArenaOpen{}), FromWorker(Progress{}),
          FromWorker(AbortedBecause{}), FromWorker(NeverRetry{})}) {
        CHECK(plain.step({0, message}, ddrun::TimePoint{}).empty());
    }
}

// --- bounds -------------------------------------------------------------------------------------

TEST_CASE("a key may be as long as the limit, not longer") {
    StoreStory store;
    const std::string longest(max_key_bytes, 'k'), longer(max_key_bytes + 1, 'k');
    CHECK_FALSE(store.waits(store.set(0, longest, "v")));
    CHECK(store.value(store.get(0, longest)) == "v");
    CHECK(store.error(store.set(0, longer, "v")) == StoreError::too_large);
    CHECK(store.error(store.get(0, longer, 1000)) == StoreError::too_large);
    CHECK(store.error(store.barrier(0, longer)) == StoreError::too_large);
    CHECK(store.idle());
}

TEST_CASE("values are bounded together, and deleting makes room again") {
    StoreStory store;
    const std::string quarter(max_store_bytes / 5, 'v');
    for (const char* key : {"a", "b", "c", "d"}) {
        CHECK(store.answer<StoreDone>(store.set(0, key, quarter)).id > 0);
    }
    CHECK(store.answer<StoreDone>(store.set(0, "a", quarter)).id > 0);
    CHECK(store.error(store.set(0, "e", quarter)) == StoreError::full);
    CHECK(store.error(store.get(0, "e")) == StoreError::timed_out);
    (void)store.asks(0, StoreDelete{0, "b"});
    CHECK(store.answer<StoreDone>(store.set(0, "e", quarter)).id > 0);
}

TEST_CASE("an answer that would not fit into a frame is refused") {
    StoreStory store;
    const std::string large(max_frame_bytes - 64, 'v');
    CHECK(store.answer<StoreDone>(store.set(0, "a", large)).id > 0);
    CHECK(store.error(store.set(0, "b", large + "v")) == StoreError::too_large);
    CHECK(store.value(store.get(0, "a")).size() == large.size());
    CHECK(store.error(store.asks(0, StoreMultiGet{0, {"a", "a"}, 0})) == StoreError::too_large);
}

TEST_CASE("open waits are bounded") {
    StoreStory store;
    for (std::size_t i = 0; i < max_open_waits; ++i) (void)store.get(0, "k", 1000);
    CHECK(store.error(store.get(1, "k", 1000)) == StoreError::full);
    CHECK(store.error(store.barrier(1, "b")) == StoreError::full);
    store.passes(1s);
    CHECK(store.waits(store.get(1, "k", 1000)));
}

TEST_CASE("the number of keys is bounded") {
    KeyTable table;
    for (std::size_t i = 0; i < max_store_keys; ++i) {
        if (table.set(std::to_string(i), "") != StoreError::none) FAIL("full at " << i);
    }
    CHECK(table.set("one more", "") == StoreError::full);
    CHECK(table.set("0", "again") == StoreError::none);
    CHECK(table.erase("1"));
    CHECK(table.set("one more", "") == StoreError::none);
}
