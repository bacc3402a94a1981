#pragma once

#include <cstddef>
#include <vector>

namespace ddrun::detail {

// What one node sends to the next and takes from the one before, block by block, in a collective
// over a ring of nodes. Blocks are streamed: a block that follows an incoming one may leave as fast
// as that one arrives.
struct RingPlan {
    static constexpr int ready = -1;
    struct Out {
        int block = 0;
        int follows = ready;  // index into `in`
        bool operator==(const Out&) const = default;
    };
    struct In {
        int block = 0;
        bool fold = false;  // combined with what this node has; else it takes its place
        bool operator==(const In&) const = default;
    };
    std::vector<Out> out;
    std::vector<In> in;
};

// Block b ends, combined over all nodes, at node b: N - 1 blocks each way.
[[nodiscard]] RingPlan ring_reduce_scatter(int nodes, int self);
// Block b, which node b has, comes to every node: N - 1 blocks each way.
[[nodiscard]] RingPlan ring_all_gather(int nodes, int self);
// Both, one after the other: what is sent is 2 (N - 1) / N of the data, the least possible.
[[nodiscard]] RingPlan ring_all_reduce(int nodes, int self);
// The only block goes from `root` round the ring, through every node.
[[nodiscard]] RingPlan ring_broadcast(int nodes, int self, int root);

// The nodes that `self` tells and hears in round 0, 1, ... of a meeting of all: after the last
// round each has heard, over others, of every node (dissemination, Hensgen, Finkel and Manber
// 1988). There are ceil(log2 nodes) rounds.
struct MeetingRound {
    int tell = 0;
    int hear = 0;
};
[[nodiscard]] std::vector<MeetingRound> meeting_rounds(int nodes, int self);

}  // namespace ddrun::detail
