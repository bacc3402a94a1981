#include "worker_sdk/core/ring_plan.hpp"

namespace ddrun::detail {
namespace {

int wrap(int node, int nodes) {
    return (node % nodes + nodes) % nodes;
}

// `steps` blocks from `first` downwards; each one sent is the one that came in before it.
void add_round(RingPlan& plan, int nodes, int first, bool fold) {
    for (int step = 0; step + 1 < nodes; ++step) {
        const int follows = static_cast<int>(plan.in.size()) - 1;
        plan.out.push_back({wrap(first - step, nodes), follows});
        plan.in.push_back({wrap(first - 1 - step, nodes), fold});
    }
}

}  // namespace

RingPlan ring_reduce_scatter(int nodes, int self) {
    RingPlan plan;
    add_round(plan, nodes, self - 1, true);
    return plan;
}

RingPlan ring_all_gather(int nodes, int self) {
    RingPlan plan;
    add_round(plan, nodes, self, false);
    return plan;
}

RingPlan ring_all_reduce(int nodes, int self) {
    RingPlan plan;
    add_round(plan, nodes, self - 1, true);
    add_round(plan, nodes, self, false);
    return plan;
}

RingPlan ring_broadcast(int nodes, int self, int root) {
    RingPlan plan;
    if (self != root) plan.in.push_back({0, false});
    if (wrap(self + 1, nodes) != root) plan.out.push_back({0, self == root ? RingPlan::ready : 0});
    return plan;
}

std::vector<MeetingRound> meeting_rounds(int nodes, int self) {
    std::vector<MeetingRound> rounds;
    for (int distance = 1; distance < nodes; distance *= 2)
        rounds.push_back({wrap(self + distance, nodes), wrap(self - distance, nodes)});
    return rounds;
}

}  // namespace ddrun::detail
