#pragma once

#include <ddrun/pending.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun {

// Keys and values that all ranks of one round share. Small things: addresses, ids, counters, votes.
// A new round starts empty, so nothing of an attempt that failed can be read by mistake. A worker
// started alone has a store of its own with the same behaviour.
//
// Each operation comes twice: as a call that waits for the agent's answer, and as `async_...`,
// which sends and returns. Many requests under way at once cost far less than one after another:
//
//     std::vector<ddrun::Pending<std::string>> addresses;
//     for (int peer : peers) addresses.push_back(store.async_get("address/" +
//     std::to_string(peer))); for (auto& address : addresses) connect_to(address.get());
//
// The agent serves the requests of one worker in the order in which they were made.
//
// Threads: any number may call at once. Blocks: a call waits at most until its timeout
// (`answer_timeout` for those without one), a Pending's get() the same, counted from the request;
// `async_...` only while the agent is a megabyte of requests behind. Throws, all but std::bad_alloc
// derived from Error: TimedOut; PeerLost as soon as the round is aborted, and on every later call;
// AgentLost; Error{store} when a limit is hit (keys 4 KiB, values 64 MiB; an `async_...` call
// itself throws it for what it was given). After a stop request it works as before.
class Store {
  public:
    using Timeout = std::chrono::milliseconds;
    static constexpr Timeout default_timeout = std::chrono::minutes(5);
    // An agent that has not answered a request for this long beyond its timeout is taken for hung.
    static constexpr Timeout answer_timeout = std::chrono::seconds(10);

    Store() = default;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;
    virtual ~Store() = default;

    void set(std::string_view key, std::string_view value) { async_set(key, value).get(); }
    virtual Pending<void> async_set(std::string_view key, std::string_view value) = 0;

    // The value, as soon as the key exists.
    [[nodiscard]] std::string get(std::string_view key, Timeout timeout = default_timeout) {
        return async_get(key, timeout).get();
    }
    virtual Pending<std::string> async_get(std::string_view key,
                                           Timeout timeout = default_timeout) = 0;
    // All values, in the order of `keys`, as soon as all exist.
    [[nodiscard]] std::vector<std::string> get_all(const std::vector<std::string>& keys,
                                                   Timeout timeout = default_timeout) {
        return async_get_all(keys, timeout).get();
    }
    virtual Pending<std::vector<std::string>> async_get_all(const std::vector<std::string>& keys,
                                                            Timeout timeout = default_timeout) = 0;
    // The value, or nullopt where the key does not exist now.
    [[nodiscard]] std::optional<std::string> find(std::string_view key) {
        return async_find(key).get();
    }
    virtual Pending<std::optional<std::string>> async_find(std::string_view key) = 0;

    // Adds to a decimal number (absent counts as 0) and returns the sum; atomic among all ranks.
    std::int64_t add(std::string_view key, std::int64_t delta) {
        return async_add(key, delta).get();
    }
    virtual Pending<std::int64_t> async_add(std::string_view key, std::int64_t delta) = 0;
    // Writes `desired` where the value is `expected` (an absent key equals ""), and returns what is
    // there afterwards; atomic among all ranks.
    std::string compare_set(std::string_view key, std::string_view expected,
                            std::string_view desired) {
        return async_compare_set(key, expected, desired).get();
    }
    virtual Pending<std::string> async_compare_set(std::string_view key, std::string_view expected,
                                                   std::string_view desired) = 0;
    // Returns when the key does not exist.
    void remove(std::string_view key) { async_remove(key).get(); }
    virtual Pending<void> async_remove(std::string_view key) = 0;

    // Returns when every rank of the world has called it with this name.
    void barrier(std::string_view name, Timeout timeout = default_timeout) {
        async_barrier(name, timeout).get();
    }
    virtual Pending<void> async_barrier(std::string_view name,
                                        Timeout timeout = default_timeout) = 0;
    // Every rank's value, indexed by rank, when every rank of the world has called it with this
    // name.
    [[nodiscard]] std::vector<std::string> all_gather(std::string_view name, std::string_view value,
                                                      Timeout timeout = default_timeout) {
        return async_all_gather(name, value, timeout).get();
    }
    virtual Pending<std::vector<std::string>> async_all_gather(
        std::string_view name, std::string_view value, Timeout timeout = default_timeout) = 0;
};

}  // namespace ddrun
