#pragma once

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
// Threads: any number may call at once. Blocks: every call waits for the agent's answer, at most
// until its timeout (`answer_timeout` for calls without one). Throws, all but std::bad_alloc
// derived from Error: TimedOut; PeerLost as soon as the round is aborted, and on every later call;
// AgentLost; Error{store} when a limit is hit (keys 4 KiB, values 64 MiB). After a stop request it
// works as before.
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

    virtual void set(std::string_view key, std::string_view value) = 0;

    // The value, as soon as the key exists.
    [[nodiscard]] virtual std::string get(std::string_view key,
                                          Timeout timeout = default_timeout) = 0;
    // All values, in the order of `keys`, as soon as all exist.
    [[nodiscard]] virtual std::vector<std::string> get_all(const std::vector<std::string>& keys,
                                                           Timeout timeout = default_timeout) = 0;
    // The value, or nullopt where the key does not exist now.
    [[nodiscard]] virtual std::optional<std::string> find(std::string_view key) = 0;

    // Adds to a decimal number (absent counts as 0) and returns the sum; atomic among all ranks.
    virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
    // Writes `desired` where the value is `expected` (an absent key equals ""), and returns what is
    // there afterwards; atomic among all ranks.
    virtual std::string compare_set(std::string_view key, std::string_view expected,
                                    std::string_view desired) = 0;
    // Returns when the key does not exist.
    virtual void remove(std::string_view key) = 0;

    // Returns when every rank of the world has called it with this name.
    virtual void barrier(std::string_view name, Timeout timeout = default_timeout) = 0;
    // Every rank's value, indexed by rank, when every rank of the world has called it with this
    // name.
    [[nodiscard]] virtual std::vector<std::string> all_gather(
        std::string_view name, std::string_view value, Timeout timeout = default_timeout) = 0;
};

}  // namespace ddrun
