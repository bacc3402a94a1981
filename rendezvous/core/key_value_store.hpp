#pragma once

#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::rendezvous {

struct StoreRequest {  // an event: `client` (a rank) asked
    int client = 0;
    FromWorker request;  // one of the Store* requests
};
struct StoreReply {    // an action
    int client = 0;
    ToWorker reply;
};

// The keys of one round, with waits, counters, barriers and all-gathers. A new round gets a new
// store, so no key of an older round can be read. Bounded: keys, bytes and open waits have limits.
class KeyValueStore {
  public:
    using Actions = std::vector<StoreReply>;

    // `world_size` is what a barrier or all-gather of size 0 waits for.
    explicit KeyValueStore(int world_size);

    [[nodiscard]] Actions step(const StoreRequest& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);   // waits that have timed out
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // The client went away: its waits are forgotten.
    void forget(int client);
    // Every open wait and every later one ends with StoreError::aborted and these words.
    [[nodiscard]] Actions abort(const std::string& words);
};

}  // namespace ddrun::rendezvous
