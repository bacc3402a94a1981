#include "worker_sdk/core/ring_plan.hpp"

#include "tests/support/catch.hpp"

#include <map>
#include <optional>
#include <set>

using namespace ddrun::detail;

namespace {

// What a block is made of: the nodes whose data are in it, each once.
using Content = std::multiset<int>;

// All nodes of a ring, each block moved whole; fails where no plan can go on.
class Ring {
  public:
    Ring(int nodes, RingPlan (*plan)(int, int)) : nodes_(nodes) {
        for (int node = 0; node < nodes; ++node) plans_.push_back(plan(nodes, node));
    }
    explicit Ring(std::vector<RingPlan> plans)
        : nodes_(static_cast<int>(plans.size())), plans_(std::move(plans)) {}

    std::map<std::pair<int, int>, Content> blocks;  // (node, block)

    void run() {
        std::vector<std::size_t> sent(plans_.size());
        std::vector<std::size_t> taken(plans_.size());
        for (bool moved = true; moved;) {
            moved = false;
            for (int node = 0; node < nodes_; ++node) moved = step(node, sent, taken) || moved;
        }
        for (std::size_t node = 0; node < plans_.size(); ++node) {
            REQUIRE(sent[node] == plans_[node].out.size());
            REQUIRE(taken[node] == plans_[node].in.size());
        }
    }

  private:
    bool step(int node, std::vector<std::size_t>& sent, std::vector<std::size_t>& taken) {
        const auto self = static_cast<std::size_t>(node);
        const auto next = (self + 1) % plans_.size();
        if (sent[self] == plans_[self].out.size()) return false;
        const auto& out = plans_[self].out[sent[self]];
        if (out.follows >= static_cast<int>(taken[self])) return false;
        REQUIRE(taken[next] < plans_[next].in.size());
        const auto& in = plans_[next].in[taken[next]];
        REQUIRE(in.block == out.block);
        const Content content = blocks[{node, out.block}];
        Content& target = blocks[{static_cast<int>(next), in.block}];
        if (!in.fold) target.clear();
        target.insert(content.begin(), content.end());
        ++sent[self];
        ++taken[next];
        return true;
    }

    int nodes_;
    std::vector<RingPlan> plans_;
};

Content everyone(int nodes) {
    Content all;
    for (int node = 0; node < nodes; ++node) all.insert(node);
    return all;
}

Ring full_ring(int nodes, RingPlan (*plan)(int, int)) {
    Ring ring(nodes, plan);
    for (int node = 0; node < nodes; ++node)
        for (int block = 0; block < nodes; ++block) ring.blocks[{node, block}] = {node};
    return ring;
}

}  // namespace

TEST_CASE("around the ring every block is combined over all nodes, each once") {
    for (int nodes = 1; nodes <= 9; ++nodes) {
        Ring scattered = full_ring(nodes, ring_reduce_scatter);
        scattered.run();
        for (int node = 0; node < nodes; ++node)
            CHECK(scattered.blocks[{node, node}] == everyone(nodes));

        Ring reduced = full_ring(nodes, ring_all_reduce);
        reduced.run();
        for (const auto& [place, content] : reduced.blocks) CHECK(content == everyone(nodes));

        Ring gathered(nodes, ring_all_gather);
        for (int node = 0; node < nodes; ++node) gathered.blocks[{node, node}] = {node};
        gathered.run();
        for (int node = 0; node < nodes; ++node)
            for (int block = 0; block < nodes; ++block)
                CHECK(gathered.blocks[{node, block}] == Content{block});
    }
}

TEST_CASE("a broadcast passes through every node once, whoever begins") {
    for (int nodes = 2; nodes <= 9; ++nodes)
        for (int root = 0; root < nodes; ++root) {
            std::vector<RingPlan> plans;
            for (int node = 0; node < nodes; ++node)
                plans.push_back(ring_broadcast(nodes, node, root));
            Ring ring(plans);
            ring.blocks[{root, 0}] = {root};
            ring.run();
            for (int node = 0; node < nodes; ++node) CHECK(ring.blocks[{node, 0}] == Content{root});
        }
}

TEST_CASE("after log2 rounds of a meeting each node has heard of all") {
    for (int nodes = 1; nodes <= 130; ++nodes) {
        std::vector<std::set<int>> heard(static_cast<std::size_t>(nodes));
        for (int node = 0; node < nodes; ++node) heard[static_cast<std::size_t>(node)] = {node};
        const std::size_t rounds = meeting_rounds(nodes, 0).size();
        CHECK((std::size_t{1} << rounds) >= static_cast<std::size_t>(nodes));
        CHECK((std::size_t{1} << rounds) < 2 * static_cast<std::size_t>(nodes));
        for (std::size_t round = 0; round < rounds; ++round) {
            const auto before = heard;
            for (int node = 0; node < nodes; ++node) {
                const auto here = meeting_rounds(nodes, node)[round];
                const auto& told = before[static_cast<std::size_t>(here.hear)];
                CHECK(meeting_rounds(nodes, here.hear)[round].tell == node);
                heard[static_cast<std::size_t>(node)].insert(told.begin(), told.end());
            }
        }
        for (const auto& all : heard) CHECK(all.size() == static_cast<std::size_t>(nodes));
    }
}
