#pragma once

#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ddrun::rendezvous {

// Values and answers that a node keeps to present; beyond it they count as unknown.
constexpr std::size_t max_known_bytes = std::size_t{64} << 20;
// Requests on their way; beyond it new ones are answered `full`.
constexpr std::size_t max_asked_bytes = std::size_t{256} << 20;
constexpr std::size_t max_known_gatherings = 4096;  // names; the one used longest ago is forgotten

using Kept = std::shared_ptr<const ToJob>;
using Ticket = std::uint64_t;  // order of submission, whatever sequence number it travels under

// The id of a store request; nothing for what is none.
[[nodiscard]] std::optional<std::uint64_t> request_id(const FromWorker& request);

// What this node knows of the round's store from its workers' requests and their answers: enough to
// tell a server that starts empty. Bounded; each call costs O(log n).
class StoreMemory {
  public:
    void begin_round(int round);
    [[nodiscard]] int round() const { return round_; }

    // A request (StoreAsked in `asked`) is on its way. Otherwise why it must not be sent: full,
    // mismatch (its id is in use), aborted (of another round). What is no request is none and not
    // kept.
    [[nodiscard]] StoreError asked(const Kept& asked, Ticket ticket, TimePoint now);
    // The answer came. False: nobody waits for it; it must not be passed on.
    [[nodiscard]] bool answered(const StoreAnswered& answer);
    // That worker is gone.
    void forget(std::int32_t rank);
    // Every open request is answered with these words, in the order they were asked.
    [[nodiscard]] std::vector<StoreAnswered> abort(const std::string& words);

    // Requests without an answer, with what is left of their time-outs.
    [[nodiscard]] std::map<Ticket, Kept> open_requests(TimePoint now) const;
    [[nodiscard]] std::size_t open() const { return open_.size(); }
    // All that is known of the round, in parts of bounded size; at least one.
    [[nodiscard]] std::vector<PresentKeys> present() const;
    // Keys and all-gathers whose values did not fit into max_known_bytes.
    [[nodiscard]] std::size_t unknown() const { return unknown_; }

  private:
    using Asker = std::pair<std::int32_t, std::uint64_t>;  // rank, id
    struct Open {
        Kept payload;  // a StoreAsked
        Ticket ticket = 0;
        TimePoint asked{};
    };
    struct Known {
        std::optional<Bytes> value;  // none: deleted
        std::uint64_t writes = 0;
        std::uint64_t own_writes = 0;

        [[nodiscard]] std::size_t cost(const std::string& key) const;
    };
    using GatheringName = std::pair<bool, std::string>;  // is it an all-gather?
    struct Passed {
        std::map<std::int32_t, std::uint64_t> times;  // by rank
        std::vector<Bytes> values;
        std::uint64_t last_use = 0;
    };

    void learn(const FromWorker& request, const StoreAnswered& answer);
    // Of the key that the answer is about; null: it is not there.
    void know(const std::string& key, const StoreAnswered& answer, const Bytes* value);
    void know_unversioned(const std::string& key, const Bytes& value);
    [[nodiscard]] Known take(const std::string& key);
    void put(const std::string& key, Known known);
    void pass(GatheringName name, std::int32_t rank, const std::vector<Bytes>& values);
    void forget_oldest_gathering();
    [[nodiscard]] bool make_room(std::size_t bytes);
    void close(std::map<Asker, Open>::iterator open);

    int round_ = 0;
    std::map<Asker, Open> open_;
    std::size_t open_bytes_ = 0;
    std::map<std::string, Known> keys_;
    std::map<GatheringName, Passed> gatherings_;
    std::map<std::uint64_t, GatheringName> by_use_;
    std::uint64_t uses_ = 0;
    std::size_t known_bytes_ = 0;
    std::size_t unknown_ = 0;
};

}  // namespace ddrun::rendezvous
