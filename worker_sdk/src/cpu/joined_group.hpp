#pragma once

#include "worker_sdk/src/cpu/node_ring.hpp"
#include "worker_sdk/src/cpu/shared_group.hpp"
#include "worker_sdk/src/local/solo_group.hpp"

#include <ddrun/process_group.hpp>
#include <ddrun/store.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::detail {

// Ranks of several nodes: a shared-memory group on each node, and lanes between the nodes. Lane p
// joins the p-th ranks of all nodes and carries the p-th part of the data; there are as many lanes
// as the smallest node has ranks. Every operation has the same course:
//
//   combine or spread on the node · first ranks meet over all nodes, and learn whether any rank has
//   been asked to stop · every lane moves its part · spread on the node
//
// A rank that finds the group broken first writes why into the store, where the first word stands;
// then it breaks its node's meeting and its lanes, and whoever is woken by that reads the word: all
// ranks give one answer.
class JoinedGroup final : public ProcessGroup {
  public:
    struct Layout {
        std::string name;              // the same on all ranks, of no other group of the round
        int self = 0;                  // in the group
        std::vector<int> world_ranks;  // by rank in the group
        std::vector<int> nodes;        // number of ranks on each node, in order
    };
    // `local`: the ranks of this node; null where this is the only one. Blocks until the lanes of
    // this rank stand, at most for `timeout`. Throws as a collective does.
    JoinedGroup(Layout layout, Store& store, Mesh& mesh, std::unique_ptr<SharedGroup> local,
                std::size_t heap_bytes, std::chrono::milliseconds timeout, GroupHooks hooks);
    ~JoinedGroup() override;

    // Every wait in the group ends with this. Any thread.
    void break_up(const Fault& fault);

    [[nodiscard]] int rank() const noexcept override { return layout_.self; }
    [[nodiscard]] int size() const noexcept override {
        return static_cast<int>(layout_.world_ranks.size());
    }

  private:
    void do_barrier(const CallOptions& options) override;
    void do_all_reduce(void* data, Shape shape, ReduceOp op, const CallOptions& options) override;
    void do_broadcast(void* data, Shape shape, int root, const CallOptions& options) override;
    void do_all_gather(const void* input, Shape input_shape, void* output, std::size_t output_count,
                       const CallOptions& options) override;
    void do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                           Shape output_shape, ReduceOp op, const CallOptions& options) override;
    void* do_allocate(std::size_t count, std::size_t element_bytes) override;

    // One operation of this rank while it is under way.
    struct Running {
        Call call;
        Patience patience;
        CallOptions local;  // for the parts on this node; once lanes are waited for, they give up
                            // first
    };
    template <typename OnNode, typename BetweenNodes, typename SpreadOnNode>
    void run(Call call, const CallOptions& options, OnNode on_node, BetweenNodes between_nodes,
             SpreadOnNode spread);
    void meet_nodes(const Running& running);
    [[nodiscard]] Slice lane_part(const Call& call, std::size_t lane) const;
    void spread_lanes(const Running& running, std::byte* data, Shape shape);
    void spread_from_lead(const Running& running, std::byte* data, ElementType type, Slice slice);
    [[nodiscard]] bool leads() const { return local_index_ == 0; }
    [[nodiscard]] int world_rank() const {
        return layout_.world_ranks[static_cast<std::size_t>(layout_.self)];
    }
    [[nodiscard]] Slice node_ranks(int node) const;
    [[nodiscard]] std::vector<NodeRing::Block> node_blocks(std::byte* data, std::size_t each) const;

    // --- when it breaks --------------------------------------------------------------------------
    [[nodiscard]] bool is_broken() const;
    [[noreturn]] void fail(const Call& call, const WireTrouble& trouble);
    [[noreturn]] void fail(const CallMismatch& mismatch, const Call& call);
    [[noreturn]] void fail(Failure failure);
    [[nodiscard]] Failure closed_by(const Call& call, const WireTrouble& trouble);
    void tell_arrival(const Call& call, Slice ranks);
    [[nodiscard]] Failure late(const Call& call, int waited_for);
    [[nodiscard]] Failure by_fault(const Call& call, const Fault& fault);
    // The first word of all ranks.
    [[nodiscard]] Failure first_word(const Failure& own);
    [[nodiscard]] std::string key(const std::string& what) const;

    Layout layout_;
    int node_ = 0;
    int local_index_ = 0;
    int lanes_ = 1;
    Store& store_;
    std::unique_ptr<SharedGroup> local_;
    std::unique_ptr<NodeRing> ring_;  // null: this rank is in no lane
    SoloGroup memory_;                // allocate() of a rank alone on its node
    std::chrono::milliseconds timeout_;
    GroupHooks hooks_;
    ForkGuard guard_;
    std::uint64_t sequence_ = 0;
    std::optional<Failure> broken_;
    std::atomic<std::uint64_t> fault_ = 0;  // pack(Fault)
    // What the ranks of this node tell each other about a stop: first their own wishes, then what
    // all nodes have agreed on.
    bool agreed_ = false;
    bool node_wants_stop_ = false;
    bool world_wants_stop_ = false;

  public:
    // The hooks that the node's group must be made with. `group` is set once it exists.
    [[nodiscard]] static GroupHooks local_hooks(std::shared_ptr<JoinedGroup*> group,
                                                GroupHooks outer);
};

}  // namespace ddrun::detail
