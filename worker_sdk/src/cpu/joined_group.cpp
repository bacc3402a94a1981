#include "worker_sdk/src/cpu/joined_group.hpp"

#include "worker_sdk/core/failure_text.hpp"
#include "worker_sdk/src/cpu/combine.hpp"
#include "worker_sdk/src/cpu/copy_bytes.hpp"
#include "worker_sdk/src/failure.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::detail {
namespace {

// The lanes of a node give up first, so that its own meetings do not blame a rank of the node.
constexpr auto local_slack = std::chrono::seconds(5);

const auto nothing = [](const auto&) {};

TimePoint clock_now() {
    return std::chrono::steady_clock::now();
}

ReduceOp without_average(ReduceOp op) {
    return op == ReduceOp::avg ? ReduceOp::sum : op;
}

int place_on_node(const std::vector<int>& nodes, int self, int& node) {
    int first = 0;
    for (node = 0; first + nodes[static_cast<std::size_t>(node)] <= self; ++node)
        first += nodes[static_cast<std::size_t>(node)];
    return self - first;
}

}  // namespace

GroupHooks JoinedGroup::local_hooks(std::shared_ptr<JoinedGroup*> group, GroupHooks outer) {
    GroupHooks hooks = outer;
    hooks.wants_stop = [group, wants = outer.wants_stop] {
        const JoinedGroup* joined = *group;
        return joined->agreed_ ? joined->world_wants_stop_ && joined->leads() : wants();
    };
    hooks.stop_is_agreed = [group, agree = outer.stop_is_agreed] {
        JoinedGroup* joined = *group;
        if (joined->agreed_)
            agree();
        else
            joined->node_wants_stop_ = true;
    };
    hooks.blame = [](int, const std::string&) {};  // the whole group does
    return hooks;
}

JoinedGroup::JoinedGroup(Layout layout, Store& store, Mesh& mesh,
                         std::unique_ptr<SharedGroup> local, std::size_t heap_bytes,
                         std::chrono::milliseconds timeout, GroupHooks hooks)
    : layout_(std::move(layout)),
      local_index_(place_on_node(layout_.nodes, layout_.self, node_)),
      lanes_(*std::min_element(layout_.nodes.begin(), layout_.nodes.end())),
      store_(store),
      local_(std::move(local)),
      memory_(heap_bytes),
      timeout_(timeout),
      hooks_(std::move(hooks)) {
    if (local_index_ >= lanes_) return;
    NodeRing::Place place{
        layout_.name + "/" + std::to_string(local_index_) + "/", {}, node_, leads()};
    for (int node = 0; node < static_cast<int>(layout_.nodes.size()); ++node)
        place.ranks.push_back(
            layout_.world_ranks[node_ranks(node).first + static_cast<std::size_t>(local_index_)]);
    const Call call{.operation = Operation::barrier};
    try {
        ring_ = std::make_unique<NodeRing>(
            mesh, std::move(place),
            Patience{clock_now() + timeout_, [this] { return is_broken() || hooks_.is_over(); }});
    } catch (const WireTrouble& trouble) {
        fail(call, trouble);
    }
}

JoinedGroup::~JoinedGroup() {
    if (!guard_.in_child()) {
        hooks_.ends();
        const Fault left{Fault::Kind::peer_left, world_rank(), world_rank()};
        if (!broken_) {
            try {
                (void)store_.async_compare_set(
                    key("failure"), "",
                    encode_failure({ErrorKind::peer_lost, world_rank(),
                                    "rank " + std::to_string(world_rank()) +
                                        " has ended its Worker and left the group"}));
            } catch (const Error&) {  // the agent is gone: nobody is left to be told
            }
        }
        break_up(left);
    }
    end_calls();
}

void JoinedGroup::break_up(const Fault& fault) {
    std::uint64_t none = 0;
    fault_.compare_exchange_strong(none, pack(fault));
    if (local_) local_->break_up(fault);
    if (ring_) ring_->shut_down();
}

// --- operations ---------------------------------------------------------------------------------

void JoinedGroup::do_barrier(const CallOptions& options) {
    run(
        {.operation = Operation::barrier}, options,
        [&](const Running& running) {
            if (local_) local_->do_barrier(running.local);
        },
        nothing,
        [&](const Running& running) {
            if (local_) local_->do_barrier(running.local);
        });
}

void JoinedGroup::do_all_reduce(void* data, Shape shape, ReduceOp op, const CallOptions& options) {
    const std::size_t element = bytes_of(shape.type);
    auto* const own = static_cast<std::byte*>(data);
    run(
        {.count = shape.count,
         .operation = Operation::all_reduce,
         .type = shape.type,
         .reduce = op},
        options,
        [&](const Running& running) {
            if (local_) local_->do_all_reduce(data, shape, without_average(op), running.local);
        },
        [&](const Running& running) {
            const auto lane = static_cast<std::size_t>(local_index_);
            const Slice mine = lane_part(running.call, lane);
            const auto nodes = static_cast<std::size_t>(ring_->nodes());
            std::vector<NodeRing::Block> blocks;
            for (std::size_t node = 0; node < nodes; ++node) {
                const Slice part = part_of(mine.count, nodes, node, cache_line / element);
                blocks.push_back({own + (mine.first + part.first) * element, part.count * element});
            }
            ring_->run(running.call, ring_all_reduce(ring_->nodes(), node_), blocks,
                       running.patience);
            if (op == ReduceOp::avg)
                divide_by(shape.type, own + mine.first * element, mine.count,
                          layout_.world_ranks.size());
        },
        [&](const Running& running) { spread_lanes(running, own, shape); });
}

void JoinedGroup::do_broadcast(void* data, Shape shape, int root, const CallOptions& options) {
    auto* const own = static_cast<std::byte*>(data);
    const std::size_t element = bytes_of(shape.type);
    int root_node = 0;
    const int root_index =
        root < 0 || root >= size() ? 0 : place_on_node(layout_.nodes, root, root_node);
    const bool from_here = root_node == node_;
    run(
        {.count = shape.count, .root = root, .operation = Operation::broadcast, .type = shape.type},
        options,
        [&](const Running& running) {
            if (!local_) return;
            if (from_here)
                local_->do_broadcast(data, shape, root_index, running.local);
            else
                local_->do_barrier(running.local);
        },
        [&](const Running& running) {
            const Slice mine = lane_part(running.call, static_cast<std::size_t>(local_index_));
            const NodeRing::Block block{own + mine.first * element, mine.count * element};
            ring_->run(running.call, ring_broadcast(ring_->nodes(), node_, root_node), {&block, 1},
                       running.patience);
        },
        [&](const Running& running) {
            if (!from_here)
                spread_lanes(running, own, shape);
            else if (local_)
                local_->do_barrier(running.local);
        });
}

void JoinedGroup::do_all_gather(const void* input, Shape input_shape, void* output,
                                std::size_t output_count, const CallOptions& options) {
    const std::size_t each = input_shape.count * bytes_of(input_shape.type);
    const Call call = {
        .count = input_shape.count, .operation = Operation::all_gather, .type = input_shape.type};
    if (const auto problem = misfit(call, output_count, size()))
        throw Error(ErrorKind::invalid_use, *problem);
    auto* const to = static_cast<std::byte*>(output);
    const Slice here = node_ranks(node_);
    run(
        call, options,
        [&](const Running& running) {
            std::byte* const node_part = to + here.first * each;
            if (local_)
                local_->do_all_gather(input, input_shape, node_part, here.count * input_shape.count,
                                      running.local);
            else
                copy_bytes(node_part, input, each);
        },
        [&](const Running& running) {
            if (leads())
                ring_->run(running.call, ring_all_gather(ring_->nodes(), node_),
                           node_blocks(to, each), running.patience);
        },
        [&](const Running& running) {
            const std::size_t after = (here.first + here.count) * input_shape.count;
            spread_from_lead(running, to, input_shape.type, {0, here.first * input_shape.count});
            spread_from_lead(running, to, input_shape.type, {after, output_count - after});
        });
}

void JoinedGroup::do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                                    Shape output_shape, ReduceOp op, const CallOptions& options) {
    const std::size_t element = bytes_of(output_shape.type);
    const std::size_t each = output_shape.count * element;
    const Call call = {.count = output_shape.count,
                       .operation = Operation::reduce_scatter,
                       .type = output_shape.type,
                       .reduce = op};
    if (const auto problem = misfit(call, input_count, size()))
        throw Error(ErrorKind::invalid_use, *problem);
    const auto* const from = static_cast<const std::byte*>(input);
    std::vector<std::byte> sums(from, from + input_count * element);
    const Slice here = node_ranks(node_);
    run(
        call, options,
        [&](const Running& running) {
            if (local_)
                local_->do_all_reduce(sums.data(), {input_count, output_shape.type},
                                      without_average(op), running.local);
        },
        [&](const Running& running) {
            if (leads())
                ring_->run(running.call, ring_reduce_scatter(ring_->nodes(), node_),
                           node_blocks(sums.data(), each), running.patience);
        },
        [&](const Running& running) {
            spread_from_lead(running, sums.data(), output_shape.type,
                             {here.first * output_shape.count, here.count * output_shape.count});
            copy_bytes(output, sums.data() + static_cast<std::size_t>(layout_.self) * each, each);
            if (op == ReduceOp::avg)
                divide_by(output_shape.type, static_cast<std::byte*>(output), output_shape.count,
                          layout_.world_ranks.size());
        });
}

void* JoinedGroup::do_allocate(std::size_t count, std::size_t element_bytes) {
    return local_ ? local_->do_allocate(count, element_bytes)
                  : memory_.do_allocate(count, element_bytes);
}

// --- the course of an operation -----------------------------------------------------------------

template <typename OnNode, typename BetweenNodes, typename SpreadOnNode>
void JoinedGroup::run(Call call, const CallOptions& options, OnNode on_node,
                      BetweenNodes between_nodes, SpreadOnNode spread) {
    if (broken_) throw_failure(*broken_);
    call.sequence = sequence_ + 1;
    if (const auto problem = misuse(call, size())) throw Error(ErrorKind::invalid_use, *problem);
    ++sequence_;
    const auto timeout = options.timeout.value_or(timeout_);
    Running running{call, {clock_now() + timeout, [this] { return is_broken(); }}, {timeout}};
    agreed_ = node_wants_stop_ = world_wants_stop_ = false;
    if (local_) local_->speak_for(call);
    try {
        on_node(running);
        // From here the ranks of this node wait for those of others.
        running.local.timeout = timeout + local_slack;
        if (leads()) meet_nodes(running);
        agreed_ = true;
        if (ring_) between_nodes(running);
        spread(running);
    } catch (const WireTrouble& trouble) {
        fail(call, trouble);
    } catch (const CallMismatch& mismatch) {
        fail(mismatch, call);
    } catch (const PeerLost& error) {
        fail({ErrorKind::peer_lost, error.rank(), error.what()});
    } catch (const TimedOut& error) {
        if (!agreed_) tell_arrival(call, {static_cast<std::size_t>(layout_.self), 1});
        fail({ErrorKind::timed_out, error.missing().empty() ? -1 : error.missing().front(),
              error.what(), error.missing()});
    } catch (const Desynchronised& error) {
        fail({ErrorKind::desynchronised, -1, error.what()});
    } catch (const AgentLost& error) {
        fail({ErrorKind::agent_lost, -1, error.what()});
    }
}

void JoinedGroup::meet_nodes(const Running& running) {
    const bool wish = local_ ? node_wants_stop_ : hooks_.wants_stop();
    world_wants_stop_ = ring_->agree(running.call, wish, running.patience);
    if (world_wants_stop_ && !local_) hooks_.stop_is_agreed();
}

Slice JoinedGroup::lane_part(const Call& call, std::size_t lane) const {
    return part_of(call.count, static_cast<std::size_t>(lanes_), lane,
                   cache_line / bytes_of(call.type));
}

// What the lanes have brought comes to every rank of the node.
void JoinedGroup::spread_lanes(const Running& running, std::byte* data, Shape shape) {
    if (!local_) return;
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes_); ++lane) {
        const Slice part = lane_part(running.call, lane);
        local_->do_broadcast(data + part.first * bytes_of(shape.type), {part.count, shape.type},
                             static_cast<int>(lane), running.local);
    }
}

void JoinedGroup::spread_from_lead(const Running& running, std::byte* data, ElementType type,
                                   Slice slice) {
    if (local_)
        local_->do_broadcast(data + slice.first * bytes_of(type), {slice.count, type}, 0,
                             running.local);
}

Slice JoinedGroup::node_ranks(int node) const {
    Slice ranks;
    for (int before = 0; before < node; ++before)
        ranks.first += static_cast<std::size_t>(layout_.nodes[static_cast<std::size_t>(before)]);
    ranks.count = static_cast<std::size_t>(layout_.nodes[static_cast<std::size_t>(node)]);
    return ranks;
}

std::vector<NodeRing::Block> JoinedGroup::node_blocks(std::byte* data, std::size_t each) const {
    std::vector<NodeRing::Block> blocks;
    for (int node = 0; node < static_cast<int>(layout_.nodes.size()); ++node) {
        const Slice ranks = node_ranks(node);
        blocks.push_back({data + ranks.first * each, ranks.count * each});
    }
    return blocks;
}

}  // namespace ddrun::detail
