#pragma once

#include "rendezvous/core/key_table.hpp"
#include "rendezvous/core/store_gathering.hpp"
#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ddrun::rendezvous {

struct StoreRequest {  // an event: `client` (a rank) asked
    int client = 0;
    FromWorker request;  // one of the Store* requests; others are not for the store: no answer
};
struct StoreReply {  // an action
    int client = 0;
    ToWorker reply;
};

constexpr std::size_t max_open_waits = 65536;

// The keys of one round, with waits, counters, barriers and all-gathers. A new round gets a new
// store, so no key of an older round can be read. Bounded: keys and bytes (key_table.hpp), open
// waits.
class KeyValueStore {
  public:
    using Actions = std::vector<StoreReply>;

    // `world_size` is what a barrier or all-gather of size 0 waits for.
    explicit KeyValueStore(int world_size);

    [[nodiscard]] Actions step(const StoreRequest& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);  // waits that have timed out
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // The client went away: its waits are forgotten.
    void forget(int client);
    // Every open wait and every later one ends with StoreError::aborted and these words.
    [[nodiscard]] Actions abort(const std::string& words);

  private:
    enum class GatheringKind { barrier, all_gather };
    using GatheringName = std::pair<GatheringKind, std::string>;

    // Waits for all keys to exist at once; registered under the first one that is missing.
    struct KeyWait {
        std::vector<std::string> keys;
        std::size_t found = 0;  // keys before this one were there when last looked at
        bool many = false;      // answer with StoreValues

        [[nodiscard]] std::size_t bytes() const;
    };
    struct Wait {
        int client = 0;
        std::uint64_t id = 0;
        TimePoint deadline{};
        std::variant<KeyWait, GatheringName> what;
    };
    using WaitNumber = std::uint64_t;  // in order of arrival
    using Waits = std::map<WaitNumber, Wait>;

    struct Asker {
        int client = 0;
        TimePoint now{};
    };
    void on(Asker asker, const StoreSet& request);
    void on(Asker asker, const StoreGet& request);
    void on(Asker asker, const StoreAdd& request);
    void on(Asker asker, const StoreCompareSet& request);
    void on(Asker asker, const StoreDelete& request);
    void on(Asker asker, const StoreMultiGet& request);
    void on(Asker asker, const StoreBarrier& request);
    void on(Asker asker, const StoreAllGather& request);
    void on(Asker, const WorkerHello&) {}
    void on(Asker, const ArenaOpen&) {}
    void on(Asker, const Progress&) {}
    void on(Asker, const AbortedBecause&) {}
    void on(Asker, const NeverRetry&) {}

    // Why nothing may wait any more, if so.
    [[nodiscard]] std::optional<StoreFailed> wait_refusal(std::uint64_t id) const;
    [[nodiscard]] WaitNumber open_wait(Wait wait);
    void close_wait(Waits::iterator wait);
    void unregister(const KeyWait& keys, WaitNumber number);
    void withdraw(const GatheringName& name, int client);
    void time_out(Waits::iterator wait);
    void fail_wait(Waits::iterator wait, StoreError error, const std::string& words);

    // Looks on from the first key that was missing; true: all are there.
    [[nodiscard]] bool look_again(KeyWait& wait) const;
    [[nodiscard]] StoreError key_wait_problem(const KeyWait& wait) const;
    void wait_for_keys(Wait wait, TimePoint now);
    void answer_keys(const Wait& wait);
    void key_changed(const std::string& key);

    struct Arrival {
        GatheringKind kind = GatheringKind::barrier;
        std::uint64_t id = 0;
        std::string name;
        std::uint32_t size = 0;
        Bytes value;
        std::uint32_t timeout_ms = 0;
    };
    void arrive(Asker asker, Arrival arrival);
    [[nodiscard]] int size_of(const Arrival& arrival) const;
    [[nodiscard]] std::optional<StoreFailed> arrival_refusal(int client,
                                                             const Arrival& arrival) const;
    void complete(const GatheringName& name);
    [[nodiscard]] std::string missing_in_words(const Wait& wait) const;
    [[nodiscard]] static std::string words_of(const GatheringName& name);

    void reply(int client, ToWorker message);
    void reply_stored(int client, std::uint64_t id, StoreError error, ToWorker done);

    int world_size_;
    KeyTable table_;
    Waits waits_;
    WaitNumber last_wait_ = 0;
    std::set<std::pair<TimePoint, WaitNumber>> deadlines_;
    std::map<std::string, std::set<WaitNumber>> waits_by_key_;
    std::map<GatheringName, Gathering> gatherings_;
    std::size_t waiting_bytes_ = 0;  // keys waited for, values brought to all-gathers
    std::optional<std::string> aborted_;
    Actions replies_;  // of the step being made
};

}  // namespace ddrun::rendezvous
