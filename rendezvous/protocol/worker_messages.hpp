#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// What a worker (SDK) and its agent say over the agent socket. Requests carry an id that the reply
// repeats; notices carry none. One connection per worker, frames in order. Layout and limits:
// PROTOCOL.md.
namespace ddrun::rendezvous {

constexpr std::uint32_t worker_protocol_version = 1;
constexpr std::size_t max_frame_bytes = 64u << 20;  // one value may be large; more is refused
constexpr std::size_t max_key_bytes = 4096;         // longer: StoreError::too_large
constexpr std::size_t max_list_items = 65536;       // keys of a multi-get, values of an all-gather
constexpr std::size_t max_words_bytes = 4096;       // words for people; cut when sent
constexpr std::size_t max_name_bytes = 255;         // names, addresses and ids; cut when sent

using Bytes = std::string;  // raw bytes, not text

// Values that all answers to one all-gather share: n answers hold one list of n. Never changed.
class SharedValues {
  public:
    using List = std::vector<Bytes>;

    SharedValues() = default;
    SharedValues(List values) : list_(std::make_shared<const List>(std::move(values))) {}
    SharedValues(std::initializer_list<Bytes> values) : SharedValues(List(values)) {}

    operator const List&() const { return list(); }
    [[nodiscard]] const List& list() const {
        static const List none;
        return list_ ? *list_ : none;
    }
    [[nodiscard]] std::size_t size() const { return list().size(); }
    [[nodiscard]] bool empty() const { return list().empty(); }
    [[nodiscard]] const Bytes& operator[](std::size_t place) const { return list()[place]; }
    [[nodiscard]] auto begin() const { return list().begin(); }
    [[nodiscard]] auto end() const { return list().end(); }
    friend bool operator==(const SharedValues& a, const SharedValues& b) {
        return a.list_ == b.list_ || a.list() == b.list();
    }

  private:
    std::shared_ptr<const List> list_;
};

// --- worker to agent: requests ------------------------------------------------------------------
struct WorkerHello {
    std::uint32_t version = worker_protocol_version;
    std::int32_t round = 0;
    std::int32_t rank = 0;
    bool operator==(const WorkerHello&) const = default;
};
// Each is answered once, by the message named here or by StoreFailed. `timeout_ms` 0: at once.
struct StoreSet {  // StoreDone
    std::uint64_t id = 0;
    std::string key;
    Bytes value;
    bool operator==(const StoreSet&) const = default;
};
struct StoreGet {  // StoreValue as soon as the key exists
    std::uint64_t id = 0;
    std::string key;
    std::uint32_t timeout_ms = 0;
    bool operator==(const StoreGet&) const = default;
};
struct StoreAdd {  // StoreNumber: the sum; kept as decimal text, an absent key counts as 0
    std::uint64_t id = 0;
    std::string key;
    std::int64_t delta = 0;
    bool operator==(const StoreAdd&) const = default;
};
// StoreValue: what is there now (empty: nothing). Sets `desired` where the value equals `expected`,
// or where `expected` is empty and the key absent.
struct StoreCompareSet {
    std::uint64_t id = 0;
    std::string key;
    Bytes expected;
    Bytes desired;
    bool operator==(const StoreCompareSet&) const = default;
};
struct StoreDelete {  // StoreNumber: keys removed, 1 or 0
    std::uint64_t id = 0;
    std::string key;
    bool operator==(const StoreDelete&) const = default;
};
struct StoreMultiGet {  // StoreValues, in the order of `keys`, as soon as all exist
    std::uint64_t id = 0;
    std::vector<std::string> keys;
    std::uint32_t timeout_ms = 0;
    bool operator==(const StoreMultiGet&) const = default;
};
// Collectives on the store, O(n) at the server. `size` 0 means the whole world. Ended by time-out
// or abort with an error that names ranks that never came. A name can be used again once all came.
struct StoreBarrier {  // StoreDone
    std::uint64_t id = 0;
    std::string name;
    std::uint32_t size = 0;
    std::uint32_t timeout_ms = 0;
    bool operator==(const StoreBarrier&) const = default;
};
struct StoreAllGather {  // StoreValues, by rank
    std::uint64_t id = 0;
    std::string name;
    std::uint32_t size = 0;
    Bytes value;
    std::uint32_t timeout_ms = 0;
    bool operator==(const StoreAllGather&) const = default;
};
// A shared-memory arena of this node and round, made once by name; every asker gets the same memfd
// (SCM_RIGHTS on ArenaReady). Zero-filled, exactly `bytes` long; another size is refused.
struct ArenaOpen {
    std::uint64_t id = 0;
    std::string name;
    std::uint64_t bytes = 0;
    bool operator==(const ArenaOpen&) const = default;
};

// --- worker to agent: notices -------------------------------------------------------------------
struct Progress {  // alive; step >= 0: that step is committed
    std::int64_t step = -1;
    bool operator==(const Progress&) const = default;
};
struct AbortedBecause {  // I end because of `rank`: my own status is not the job's
    std::int32_t rank = -1;
    std::string words;
    bool operator==(const AbortedBecause&) const = default;
};
struct NeverRetry {  // restarting would not help
    std::string words;
    bool operator==(const NeverRetry&) const = default;
};

using FromWorker = std::variant<WorkerHello, StoreSet, StoreGet, StoreAdd, StoreCompareSet,
                                StoreDelete, StoreMultiGet, StoreBarrier, StoreAllGather, ArenaOpen,
                                Progress, AbortedBecause, NeverRetry>;

// --- agent to worker ----------------------------------------------------------------------------
enum class StoreError : std::uint8_t {
    none,
    timed_out,
    not_a_number,  // StoreAdd on other text, or the sum does not fit
    too_large,     // key, value or answer over its limit
    full,          // the store holds as much as it may
    aborted,       // a peer died or the round ends
    mismatch,      // two ranks disagree about one barrier, all-gather or arena
};

struct Welcome {
    std::uint32_t version = worker_protocol_version;
    bool operator==(const Welcome&) const = default;
};
struct Refused {  // the connection is closed after this
    std::string words;
    bool operator==(const Refused&) const = default;
};
struct StoreDone {
    std::uint64_t id = 0;
    bool operator==(const StoreDone&) const = default;
};
struct StoreValue {
    std::uint64_t id = 0;
    Bytes value;
    bool operator==(const StoreValue&) const = default;
};
struct StoreNumber {
    std::uint64_t id = 0;
    std::int64_t value = 0;
    bool operator==(const StoreNumber&) const = default;
};
struct StoreValues {
    std::uint64_t id = 0;
    SharedValues values;
    bool operator==(const StoreValues&) const = default;
};
struct StoreFailed {
    std::uint64_t id = 0;
    StoreError error = StoreError::none;
    std::string words;
    bool operator==(const StoreFailed&) const = default;
};
struct ArenaReady {  // the memfd rides along
    std::uint64_t id = 0;
    bool operator==(const ArenaReady&) const = default;
};
struct StopRequested {  // should_stop() turns true
    std::int32_t signal = 0;
    std::uint32_t grace_ms = 0;
    bool operator==(const StopRequested&) const = default;
};
struct RoundAborted {  // a peer died: end every wait now
    std::int32_t rank = -1;
    std::string words;
    bool operator==(const RoundAborted&) const = default;
};

using ToWorker = std::variant<Welcome, Refused, StoreDone, StoreValue, StoreNumber, StoreValues,
                              StoreFailed, ArenaReady, StopRequested, RoundAborted>;

}  // namespace ddrun::rendezvous
