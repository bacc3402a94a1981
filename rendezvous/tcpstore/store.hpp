#pragma once

#include "rendezvous/tcpstore/requests.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ddrun::rendezvous::tcpstore {

// Everything that the clients keep must fit in this.
constexpr std::size_t max_kept_bytes = std::size_t{1} << 30;

// PyTorch's store for one round: keys, counters, queues, waits, barriers. No client is ever
// blocked: an answer that cannot be given yet comes later, as a wake-up. Thread-unsafe; no clock.
class Store {
  public:
    using Client = std::uint64_t;

    struct Outcome {
        bool close = false;         // the client asked for what cannot be: drop it
        std::vector<Client> woken;  // each is to be sent one zero byte
    };
    // Appends this client's answer, if it has one now, to `answer`. A woken client may be the one
    // that asked; its byte then comes behind `answer`.
    [[nodiscard]] Outcome handle(Client client, bool is_legacy, const Request& request,
                                 std::string& answer);
    // Its waits are dropped; what it wrote stays.
    void forget(Client client);

    [[nodiscard]] std::size_t keys() const { return values_.size(); }

  private:
    using Key = std::string;
    struct Waiting {
        std::unordered_set<Key> missing;
        Key barrier;  // not empty: waits for a barrier instead
    };

    void put(const Key& key, std::string value);
    [[nodiscard]] bool is_there(const Key& key) const;
    void written(const Key& key, std::vector<Client>& woken);
    void wake_one(const Key& key, std::vector<Client>& woken);
    [[nodiscard]] bool tick_off(Client client, const Key& key, std::vector<Client>& woken);
    void begin_wait(Client client, const Request& request, std::string& answer);
    [[nodiscard]] bool add(const Key& key, std::int64_t delta, std::int64_t& sum);
    void compare_set(const Request& request, std::string& answer, Outcome& outcome);
    void pass_barrier(Client client, const Request& request, Outcome& outcome);
    void pop(const Key& key, std::string& answer);

    std::unordered_map<Key, std::string> values_;
    std::unordered_map<Key, std::deque<std::string>> queues_;
    std::unordered_map<Client, Waiting> waiting_;
    std::unordered_map<Key, std::vector<Client>> waiters_;  // in the order in which they came
    std::unordered_map<Key, std::vector<Client>> in_barrier_;
    std::size_t kept_bytes_ = 0;
};

}  // namespace ddrun::rendezvous::tcpstore
