#pragma once

#include "rendezvous/core/key_value_store.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ddrun::rendezvous {

// The keys of the current round at the server, and how often each was written, so that a server
// that starts empty can be told what there was. Not thread-safe; no clock.
class RoundStore {
  public:
    struct Answer {
        int node = 0;
        StoreAnswered answered;
    };
    using Actions = std::vector<Answer>;

    // A new round begins empty: no key of an older one can be read.
    void begin(int round, int world_size);
    // A round that another server had begun: requests wait until everybody has presented.
    void recover(int round, int world_size);
    void present(const PresentKeys& keys);
    [[nodiscard]] Actions end_recovery(TimePoint now);
    [[nodiscard]] bool recovering() const { return recovering_; }

    [[nodiscard]] Actions ask(int node, const StoreAsked& asked, TimePoint now);
    void forget(int round, int rank);
    [[nodiscard]] Actions abort(const std::string& words);
    // A part of it is not known any more: every request, open or later, is answered so.
    [[nodiscard]] Actions lose(const std::string& words);

    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;
    [[nodiscard]] int round() const { return round_; }

  private:
    struct Presented {
        std::optional<Bytes> value;
        std::uint64_t writes = 0;  // the highest anybody saw
        std::uint64_t known = 0;   // writes whose answers came
        [[nodiscard]] bool some_unanswered() const { return writes > known; }
    };
    struct Passed {
        std::map<int, std::uint64_t> times;  // by rank
        std::uint64_t most = 0;
        SharedValues values;
    };
    using GatheringName = std::pair<bool, std::string>;
    struct Open {  // by (rank, id)
        int node = 0;
        std::string key;  // empty: about no single key
        bool writes = false;
        Bytes desired;  // of a compare-set
    };
    struct Waiting {
        int node = 0;
        StoreAsked asked;
    };

    // What the dead server must have answered already; nothing: it is to be done now.
    [[nodiscard]] std::optional<ToWorker> answered_before(const StoreAsked& asked) const;
    [[nodiscard]] std::optional<ToWorker> passed_before(bool all_gather, const std::string& name,
                                                        int rank, std::uint64_t id) const;
    [[nodiscard]] Actions translate(KeyValueStore::Actions replies);
    [[nodiscard]] Answer refuse(int node, const StoreAsked& asked, StoreError error,
                                std::string words) const;

    std::optional<KeyValueStore> store_;
    int round_ = 0;
    std::unordered_map<std::string, std::uint64_t> writes_;
    std::map<std::pair<int, std::uint64_t>, Open> open_;
    bool recovering_ = false;
    std::optional<std::string> lost_;
    std::map<std::string, Presented> presented_;
    std::map<GatheringName, Passed> passed_;
    std::vector<Waiting> waiting_;  // during recovery
};

}  // namespace ddrun::rendezvous
