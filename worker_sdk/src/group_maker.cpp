#include "worker_sdk/src/group_maker.hpp"

#include "worker_sdk/src/cpu/joined_group.hpp"
#include "worker_sdk/src/cpu/presence.hpp"
#include "worker_sdk/src/local/solo_group.hpp"

#include <sched.h>

#include <algorithm>
#include <numeric>

namespace ddrun::detail {
namespace {

// A rank's way in and out for buffers outside the arena: two halves that fit the second-level cache
// together with what they are copied from.
constexpr std::size_t window_bytes = 512 * 1024;
// About 40 us of looking before a futex sleep, which costs about as much. With fewer cores than
// ranks the one that is waited for needs the core.
constexpr int spins_on_own_core = 1000;
constexpr int spins_on_shared_core = 20;

int spins_for(std::size_t ranks) {
    cpu_set_t allowed;
    const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    return known && static_cast<std::size_t>(CPU_COUNT(&allowed)) >= ranks ? spins_on_own_core
                                                                           : spins_on_shared_core;
}

Fault fault_of(const Failure& failure) {
    if (failure.kind == ErrorKind::agent_lost) return {Fault::Kind::agent_lost, -1, -1};
    return {Fault::Kind::peer_lost, failure.rank, -1};
}

std::string text_of(const std::vector<int>& ranks) {
    std::string text;
    for (const int rank : ranks) text += std::to_string(rank) + ",";
    return text;
}

int place_of(int rank, const std::vector<int>& ranks) {
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

void check_ranks(const std::vector<int>& ranks, int self, int world) {
    const bool in_world = !ranks.empty() && ranks.front() >= 0 && ranks.back() < world;
    if (!in_world ||
        std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end())
        throw Error(ErrorKind::invalid_use, "new_group: the ranks must rise from 0 to at most " +
                                                std::to_string(world - 1));
    if (!std::binary_search(ranks.begin(), ranks.end(), self))
        throw Error(ErrorKind::invalid_use,
                    "new_group: rank " + std::to_string(self) + " makes a group that it is not in");
}

}  // namespace

std::unique_ptr<ProcessGroup> GroupMaker::make_world() {
    if (worker_.env.world_size > 1) worker_.stop.use_agreement();
    std::vector<int> all(static_cast<std::size_t>(worker_.env.world_size));
    std::iota(all.begin(), all.end(), 0);
    return make_named("world", std::move(all));
}

std::unique_ptr<ProcessGroup> GroupMaker::make(std::vector<int> ranks) {
    check_ranks(ranks, worker_.env.rank, worker_.env.world_size);
    const std::string text = text_of(ranks);
    const int before = calls_[text]++;
    // Short however many they are: it is part of keys.
    return make_named(std::to_string(purpose_of(text)) + "." + std::to_string(before),
                      std::move(ranks));
}

std::unique_ptr<ProcessGroup> GroupMaker::make_named(std::string name, std::vector<int> ranks) {
    worker_.guard.check();
    if (ranks.size() == 1)
        return std::make_unique<SoloGroup>(worker_.options.shared_bytes_per_rank);
    const Members group = members(std::move(name), std::move(ranks));
    if (group.nodes.size() == 1) return make_on_node(group);
    return make_joined(group);
}

GroupMaker::Members GroupMaker::members(std::string name, std::vector<int> ranks) {
    Members group{std::move(name), std::move(ranks), 0, {}, {}, 0};
    group.self = place_of(worker_.env.rank, group.ranks);
    const std::vector<int> nodes = nodes_of(group.ranks);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (i == 0 || nodes[i] != nodes[i - 1]) group.nodes.push_back(0);
        ++group.nodes.back();
        if (nodes[i] == worker_.env.node_rank) group.local.push_back(group.ranks[i]);
    }
    group.local_self = place_of(worker_.env.rank, group.local);
    return group;
}

// Ranks of one node are neighbours, so equal numbers stand together.
std::vector<int> GroupMaker::nodes_of(const std::vector<int>& ranks) {
    if (worker_.env.node_count == 1) return std::vector<int>(ranks.size(), 0);
    const auto key = [](int rank) { return "ddrun.node/" + std::to_string(rank); };
    auto told =
        worker_.store->async_set(key(worker_.env.rank), std::to_string(worker_.env.node_rank));
    std::vector<std::string> keys;
    for (const int rank : ranks) keys.push_back(key(rank));
    std::vector<int> nodes;
    for (const auto& node : worker_.store->get_all(keys, worker_.options.collective_timeout))
        nodes.push_back(std::stoi(node));
    told.get();
    return nodes;
}

std::unique_ptr<ProcessGroup> GroupMaker::make_on_node(const Members& members) {
    GroupHooks outer = hooks(members);
    const EndToken token = stop_hearing_when_destroyed(outer);
    auto group = make_shared(members, std::move(outer));
    let_hear(*group, token);
    return group;
}

std::unique_ptr<ProcessGroup> GroupMaker::make_joined(const Members& members) {
    if (!mesh_)
        mesh_ = std::make_unique<Mesh>(*worker_.store, worker_.env.rank, worker_.env.master_addr);
    const auto self = std::make_shared<JoinedGroup*>();
    GroupHooks outer = hooks(members);
    auto local = members.local.size() > 1
                     ? make_shared(members, JoinedGroup::local_hooks(self, outer))
                     : nullptr;
    const EndToken token = stop_hearing_when_destroyed(outer);
    auto group = std::make_unique<JoinedGroup>(
        JoinedGroup::Layout{members.name, members.self, members.ranks, members.nodes},
        *worker_.store, *mesh_, std::move(local), worker_.options.shared_bytes_per_rank,
        worker_.options.collective_timeout, std::move(outer));
    *self = group.get();
    let_hear(*group, token);
    return group;
}

// A group is told when nothing with peers can finish any more, from when it exists until it is
// destroyed.
GroupMaker::EndToken GroupMaker::stop_hearing_when_destroyed(GroupHooks& hooks) {
    const auto token = std::make_shared<int>();
    hooks.ends = [this, token] { worker_.end_watch.remove(*token); };
    return token;
}

template <typename Group>
void GroupMaker::let_hear(Group& group, const EndToken& token) {
    *token = worker_.end_watch.add(
        [&group](const Failure& failure) { group.break_up(fault_of(failure)); });
}

// The ranks of this node. The control thread, which lives as long as the worker, holds what shows
// the others that this rank does.
std::unique_ptr<SharedGroup> GroupMaker::make_shared(const Members& members, GroupHooks hooks) {
    auto arena = open_arena(members);
    Slot* const slot = &arena->slots()[static_cast<std::size_t>(members.local_self)];
    worker_.link->run_there([slot] { enter(*slot); });
    hooks.ends = [this, slot, before = hooks.ends] {
        before();
        worker_.link->run_there([slot] { leave(*slot); });
    };
    return std::make_unique<SharedGroup>(
        std::move(arena),
        SharedGroup::Settings{members.local_self, members.local, worker_.options.collective_timeout,
                              spins_for(members.local.size())},
        std::move(hooks));
}

std::unique_ptr<Arena> GroupMaker::open_arena(const Members& members) {
    const ArenaShape shape{static_cast<int>(members.local.size()), window_bytes,
                           worker_.options.shared_bytes_per_rank};
    const auto reply =
        worker_.link->ask(rendezvous::ArenaOpen{0, "ddrun.group/" + members.name, shape.total()},
                          "opening the process group", Store::answer_timeout);
    if (!reply.descriptor)
        throw AgentLost("opening the process group: the agent sent no shared memory");
    return std::make_unique<Arena>(reply.descriptor, shape);
}

// Ranks agree on a stop in the group of all: in another, some would know and some not.
GroupHooks GroupMaker::hooks(const Members& members) const {
    const bool of_all = static_cast<int>(members.ranks.size()) == worker_.env.world_size;
    GroupHooks hooks;
    hooks.wants_stop = [this, of_all] { return of_all && worker_.stop.is_wanted(); };
    hooks.stop_is_agreed = [this] { worker_.stop.agree(); };
    hooks.blame = [this](int rank, const std::string& words) {
        worker_.stop.end();
        worker_.link->blame(rank, words);
    };
    hooks.cause = [this] { return worker_.stop.cause(); };
    hooks.is_over = [this] { return worker_.stop.has_ended(); };
    return hooks;
}

}  // namespace ddrun::detail
