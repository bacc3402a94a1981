#pragma once

#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <string>
#include <variant>
#include <vector>

// What the coordinator of a job is told, what it answers, and what a status page may ask.
namespace ddrun::rendezvous {

// `node` everywhere: the id of a member of the job, >= 0, given by whoever feeds the coordinator;
// the same across reconnects of one agent, never used again for another.

// --- events -------------------------------------------------------------------------------------
struct NodeMessage {  // `node` said `message`
    int node = 0;
    ToCoordinator message;
};
// `node` is silent, or is back. While it is silent it may hold an older failure than the one that
// is known, and no round is granted to it.
struct NodeSuspect {
    int node = 0;
    bool suspect = true;  // false: it is back, and what it had to say follows at once
};
// `node` is out of the job for good, whatever it still thinks.
struct NodeLost {
    int node = 0;
    std::string words;       // "its connection closed and it did not come back within 5 s"
    bool announced = false;  // it said goodbye
    TimePoint fenced_by{};   // no process of it runs after this; in the past: proven already
};
// A member of the job that the server is recovering came back after restore().
struct Presented {
    int node = 0;
    Join offer;
    Standing standing;
};
using CoordinatorEvent = std::variant<NodeMessage, NodeSuspect, NodeLost, Presented>;

// In a restored job a node that was granted the round and did not come back yet is known by its
// seat. When the recovery window ends, it is NodeLost under this id.
[[nodiscard]] constexpr int absent_node(int node_rank) {
    return -1 - node_rank;
}

// --- actions ------------------------------------------------------------------------------------
struct NodeAnswer {  // say `message` to `node`
    int node = 0;
    FromCoordinator message;
};

// --- for people ---------------------------------------------------------------------------------
struct MemberStatus {
    int node = 0;
    std::string name;
    int node_rank = -1;   // -1: not in the round
    int first_rank = -1;  // -1: not in the round
    int slots = 1;
    // "running", "done", "gone", "unfit", "leaving", "silent", "absent", "spare", "waiting"
    std::string state;
};

}  // namespace ddrun::rendezvous
