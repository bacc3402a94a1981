#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// What a worker (SDK) and its agent say over the agent socket. Requests carry an id that the reply
// repeats; notices carry none. One connection per worker, frames in order. Layout and limits: PROTOCOL.md.
namespace ddrun::rendezvous {

constexpr std::uint32_t worker_protocol_version = 1;
constexpr std::size_t max_frame_bytes = 64u << 20;  // one value may be large; more is refused
constexpr std::size_t max_key_bytes = 4096;

using Bytes = std::string;  // raw bytes, not text

// --- worker to agent: requests ------------------------------------------------------------------
struct WorkerHello {
    std::uint32_t version = worker_protocol_version;
    std::int32_t round = 0;
    std::int32_t rank = 0;
    std::int32_t local_rank = 0;
    std::int32_t pid = 0;
};
struct StoreSet { std::uint64_t id = 0; std::string key; Bytes value; };
// Answers as soon as the key exists; after `timeout_ms` with StoreError::timed_out. 0: at once.
struct StoreGet { std::uint64_t id = 0; std::string key; std::uint32_t timeout_ms = 0; };
struct StoreAdd { std::uint64_t id = 0; std::string key; std::int64_t delta = 0; };
// Replies with the value now there; `expected` empty and key absent also sets.
struct StoreCompareSet { std::uint64_t id = 0; std::string key; Bytes expected; Bytes desired; };
struct StoreDelete { std::uint64_t id = 0; std::string key; };
struct StoreMultiGet { std::uint64_t id = 0; std::vector<std::string> keys; std::uint32_t timeout_ms = 0; };
// Collectives on the store, O(n) at the server. `size` 0 means the whole world. Ended by time-out
// or abort with an error that names ranks that never came.
struct StoreBarrier { std::uint64_t id = 0; std::string name; std::uint32_t size = 0; std::uint32_t timeout_ms = 0; };
struct StoreAllGather { std::uint64_t id = 0; std::string name; std::uint32_t size = 0; Bytes value; std::uint32_t timeout_ms = 0; };
// A shared-memory arena of this node and round, made once by name; every asker gets the same memfd
// (SCM_RIGHTS on the reply). Zero-filled, exactly `bytes` long; another size is refused.
struct ArenaOpen { std::uint64_t id = 0; std::string name; std::uint64_t bytes = 0; };

// --- worker to agent: notices -------------------------------------------------------------------
struct Progress { std::int64_t step = -1; };        // alive; step >= 0: that step is committed
struct AbortedBecause { std::int32_t rank = -1; std::string words; };  // I end because of `rank`
struct NeverRetry { std::string words; };

using FromWorker = std::variant<WorkerHello, StoreSet, StoreGet, StoreAdd, StoreCompareSet, StoreDelete,
                                StoreMultiGet, StoreBarrier, StoreAllGather, ArenaOpen, Progress,
                                AbortedBecause, NeverRetry>;

// --- agent to worker ----------------------------------------------------------------------------
enum class StoreError : std::uint8_t { none, timed_out, not_a_number, too_large, full, aborted, mismatch };

struct Welcome { std::uint32_t version = worker_protocol_version; };
struct Refused { std::string words; };
struct StoreDone { std::uint64_t id = 0; };
struct StoreValue { std::uint64_t id = 0; Bytes value; };
struct StoreNumber { std::uint64_t id = 0; std::int64_t value = 0; };
struct StoreValues { std::uint64_t id = 0; std::vector<Bytes> values; };
struct StoreFailed { std::uint64_t id = 0; StoreError error = StoreError::none; std::string words; };
struct ArenaReady { std::uint64_t id = 0; };         // the memfd rides along
struct StopRequested { std::int32_t signal = 0; std::uint32_t grace_ms = 0; };  // should_stop() turns true
struct RoundAborted { std::int32_t rank = -1; std::string words; };  // a peer died: end every wait now

using ToWorker = std::variant<Welcome, Refused, StoreDone, StoreValue, StoreNumber, StoreValues,
                              StoreFailed, ArenaReady, StopRequested, RoundAborted>;

}  // namespace ddrun::rendezvous
