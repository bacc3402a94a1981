#pragma once

#include "worker_sdk/core/collective_call.hpp"
#include "worker_sdk/core/ring_plan.hpp"
#include "worker_sdk/src/cpu/mesh.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ddrun::detail {

// Another node's rank is in a different collective.
struct CallMismatch {
    int rank = -1;  // of the world
    Call theirs;
};

// One lane between the nodes of a group: a rank of each node, connected to its neighbours in a
// ring, and for meetings to those at distances of powers of two. Every block carries the call it
// belongs to; a different one is a CallMismatch before any of its data is touched.
//
// One thread at a time; shut_down() from any. Throws WireTrouble and CallMismatch, after which the
// lane is of no more use.
class NodeRing {
  public:
    struct Place {
        std::string name;        // of group and lane, the same on all its ranks
        std::vector<int> ranks;  // of the world: the lane's, by node
        int self = 0;            // this node
        bool meets = false;      // with connections for agree()
    };
    // Returns when all connections of this rank stand.
    NodeRing(Mesh& mesh, Place place, const Patience& patience);

    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;  // whole elements of the call's type
    };
    // Moves `blocks` as `plan` says, both ways at once.
    void run(const Call& call, const RingPlan& plan, std::span<const Block> blocks,
             const Patience& patience);
    // Returns when every node's lane has called it: whether any gave true.
    [[nodiscard]] bool agree(const Call& call, bool flag, const Patience& patience);

    // Ends every wait on the lane, here and at the neighbours.
    void shut_down();

    [[nodiscard]] int nodes() const { return static_cast<int>(place_.ranks.size()); }
    [[nodiscard]] int node() const { return place_.self; }

  private:
    class Outgoing;
    class Incoming;
    struct Peer {
        int rank = -1;
        UniqueFd socket;
    };

    [[nodiscard]] int rank_at(int node) const;

    Place place_;
    std::vector<MeetingRound> rounds_;
    std::vector<Peer> tell_;  // [0]: the next node
    std::vector<Peer> hear_;  // [0]: the one before
    std::vector<std::byte> scratch_;
};

}  // namespace ddrun::detail
