#pragma once

#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What an agent and the rendezvous server say to each other over one TCP connection. Frames, limits
// and version rules: PROTOCOL.md. Nothing here grows with the number of nodes.
namespace ddrun::rendezvous {

constexpr std::uint32_t newest_node_protocol = 1;
constexpr std::uint32_t oldest_node_protocol = 1;
// Until the hello is accepted a peer may not make us hold more than this.
constexpr std::size_t max_hello_frame_bytes = 32u << 10;
// A worker's largest frame, or a key with its largest value, and what is said about it.
constexpr std::size_t max_node_frame_bytes = max_frame_bytes + (64u << 10);
constexpr std::size_t max_no_restart_codes = 256;  // --no-restart-on

// What has to be the same on all nodes of a job, or they are refused. A value that the user did not
// give is its default.
struct JobTerms {
    std::string job_id;
    int min_nodes = 1;
    int max_nodes = 1;
    int spares = 0;  // nodes beyond max_nodes that may park
    int max_restarts = 0;
    std::vector<int> no_restart_on;
    int crash_loop = 0;
    Duration restart_backoff = std::chrono::seconds(1);
    Duration join_timeout = std::chrono::minutes(10);
    Duration last_call = std::chrono::seconds(30);
    Duration heartbeat = std::chrono::seconds(1);
    Duration lease = std::chrono::seconds(15);
    bool operator==(const JobTerms&) const = default;
};

// --- payloads: delivered exactly once and in order, across reconnects ----------------------------
struct StoreAsked {  // a worker of this node asks the round's store
    std::int32_t round = 0;
    std::int32_t rank = 0;
    FromWorker request;  // one of the Store* requests
    bool operator==(const StoreAsked&) const = default;
};
struct StoreForgotten {  // that worker is gone: its open waits are void
    std::int32_t round = 0;
    std::int32_t rank = 0;
    bool operator==(const StoreForgotten&) const = default;
};
struct StoreAnswered {
    std::int32_t round = 0;
    std::int32_t rank = 0;
    // How often the key had been written when this answer was made, this write included; 0 for
    // answers about no single key. A server that starts empty is told these numbers.
    std::uint64_t writes = 0;
    bool wrote = false;  // this request did: set, added, deleted what was there, swapped
    ToWorker reply;
    bool operator==(const StoreAnswered&) const = default;
};
using ToJob = std::variant<ToCoordinator, StoreAsked, StoreForgotten>;
using FromJob = std::variant<FromCoordinator, StoreAnswered>;

// --- what a node presents when it comes back -----------------------------------------------------
// A server that knows the job needs only `heard`; one that starts empty rebuilds the job from
// these.
struct Standing {
    RoundGranted grant;    // round 0: it was in none
    bool done = false;     // its workers all exited 0
    bool gone = false;     // none of its processes of the round is left
    bool healthy = false;  // a step of this round was committed
    int restarts_used = 0;
    std::optional<StopRound> stop;   // the round is being stopped
    std::optional<Verdict> verdict;  // the job is over
    bool operator==(const Standing&) const = default;
};
// One key as this node's workers know it from the answers they had; sent as PresentKeys after
// Welcome, where that asked for it.
struct KnownKey {
    std::string key;
    Bytes value;
    bool deleted = false;
    std::uint64_t writes = 0;      // as in the last StoreAnswered about it; 0: from a multi-get
    std::uint64_t own_writes = 0;  // how many of them were this node's, all answered
    bool operator==(const KnownKey&) const = default;
};

// A barrier or all-gather that `rank` of this node came through: `times` in this round. Another
// rank that still waits for a time that this one has passed must be let through, with `values`
// where it is an all-gather (only on one entry of a name: the answer of the node's last passage).
struct PassedGathering {
    bool all_gather = false;
    std::string name;
    std::int32_t rank = 0;
    std::uint64_t times = 0;
    std::vector<Bytes> values;
    bool operator==(const PassedGathering&) const = default;
};

// --- agent to server -----------------------------------------------------------------------------
struct NodeHello {
    std::uint32_t oldest = oldest_node_protocol;
    std::uint32_t newest = newest_node_protocol;
    std::string build;  // "0.1.0", for words
    JobTerms terms;
    Join offer;
    std::string node_incarnation;  // 128 random bits in hex: this agent process
    std::string obituary_token;    // 128 random bits in hex, known to the keeper
    // A resume: the job's incarnation; empty for a first hello.
    std::string job_incarnation;
    std::uint64_t heard = 0;  // server payloads applied so far
    Standing standing;
    bool operator==(const NodeHello&) const = default;
};
struct Heartbeat {
    std::uint64_t number = 0;
    std::uint64_t heard = 0;
    bool operator==(const Heartbeat&) const = default;
};
struct FromNodePayload {
    std::uint64_t sequence = 0;  // 1, 2, ... of this node incarnation
    std::uint64_t heard = 0;
    ToJob payload;
    bool operator==(const FromNodePayload&) const = default;
};
struct PresentKeys {  // in parts; the last one says so
    std::int32_t round = 0;
    std::vector<KnownKey> keys;
    std::vector<PassedGathering> passed;
    bool last = true;
    bool operator==(const PresentKeys&) const = default;
};
struct Goodbye {  // nothing of this node is left; it does not come back
    bool operator==(const Goodbye&) const = default;
};
// From the keeper, on a connection of its own and before any authentication: the agent died and
// nothing it started is left. The token was told at hello and is good once.
struct Obituary {
    std::string job_id;
    std::string token;
    bool operator==(const Obituary&) const = default;
};
using FromNode =
    std::variant<NodeHello, Heartbeat, FromNodePayload, PresentKeys, Goodbye, Obituary>;

// --- server to agent -----------------------------------------------------------------------------
// `present_keys`: the server started empty. Payloads of both directions then count from 1 again,
// from this welcome on, on both sides. The node sends PresentKeys (in parts), then as payloads 1,
// 2, ... in the order of their submission all that may be lost: what the old server had not heard,
// and of what it had heard the store requests without an answer, the failure reports of a round
// that was not stopped and a leave without a verdict. They may repeat what `standing` says. Until
// the last part has come the server sends this node no payload, so that a connection lost in
// between starts the same over.
struct NodeWelcome {
    std::uint32_t version = newest_node_protocol;
    std::string job_incarnation;  // 128 random bits in hex: this run of the job
    std::uint64_t heard = 0;      // payloads of this node incarnation applied so far
    bool present_keys = false;    // the server started empty: tell it the store
    bool operator==(const NodeWelcome&) const = default;
};
struct NodeRefused {  // the connection is closed after this
    int exit_code = 0;
    bool retry_later = false;  // the previous run of this id is still closing
    std::string words;
    bool operator==(const NodeRefused&) const = default;
};
constexpr std::int32_t round_not_known = -1;
struct HeartbeatSeen {
    std::uint64_t number = 0;
    std::uint64_t heard = 0;
    // The round the server has this node in, until the next one is granted; 0: none. A node with
    // processes of another round kills them. `round_not_known`: the server started empty and still
    // recovers the job; whoever is frozen stays so, since others may have gone on without it.
    std::int32_t round = 0;
    bool operator==(const HeartbeatSeen&) const = default;
};
struct FromServerPayload {
    std::uint64_t sequence = 0;
    std::uint64_t heard = 0;
    FromJob payload;
    bool operator==(const FromServerPayload&) const = default;
};
using FromServer = std::variant<NodeWelcome, NodeRefused, HeartbeatSeen, FromServerPayload>;

}  // namespace ddrun::rendezvous
