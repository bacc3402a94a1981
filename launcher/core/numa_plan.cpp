#include "launcher/core/numa_plan.hpp"

#include "launcher/core/words.hpp"

#include <algorithm>
#include <iterator>

namespace ddrun::launcher {
namespace {

using Cpus = std::vector<int>;

Cpus sorted(Cpus cpus) {
    std::sort(cpus.begin(), cpus.end());
    return cpus;
}

Cpus common(const Cpus& left, const Cpus& right) {
    Cpus both;
    std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                          std::back_inserter(both));
    return both;
}

// The machine as far as this process may use it.
struct Usable {
    std::vector<NumaNode> nodes;  // with at least one allowed CPU
    bool has_memory_nodes = false;
};

Usable usable_part(const MachineFacts& facts) {
    Usable usable;
    const auto allowed = sorted(facts.allowed_cpus);
    for (const auto& node : facts.numa_nodes) {
        auto cpus = common(sorted(node.cpus), allowed);
        if (!cpus.empty()) usable.nodes.push_back({node.id, node.socket, std::move(cpus)});
    }
    usable.has_memory_nodes = usable.nodes.size() > 1;
    if (usable.nodes.empty()) usable.nodes.push_back({0, 0, allowed});
    return usable;
}

// Groups cut down to `within`, empty ones left out; single CPUs where the machine names no group.
std::vector<Cpus> groups_within(const std::vector<Cpus>& groups, const Cpus& within) {
    std::vector<Cpus> cut;
    Cpus named;
    for (const auto& group : groups) {
        auto part = common(sorted(group), within);
        if (part.empty()) continue;
        named.insert(named.end(), part.begin(), part.end());
        cut.push_back(std::move(part));
    }
    named = sorted(std::move(named));
    for (const int cpu : within) {
        if (!std::binary_search(named.begin(), named.end(), cpu)) cut.push_back({cpu});
    }
    return cut;
}

std::optional<std::size_t> node_of_gpu(const Usable& usable, const MachineFacts& facts,
                                       const std::optional<VisibleDevices>& devices,
                                       std::size_t worker) {
    if (!devices || worker >= devices->entries.size()) return std::nullopt;
    const auto index = device_index(devices->entries[worker]);
    if (!index || static_cast<std::size_t>(*index) >= facts.gpu_numa_nodes.size())
        return std::nullopt;
    const int id = facts.gpu_numa_nodes[static_cast<std::size_t>(*index)];
    const auto found = std::find_if(usable.nodes.begin(), usable.nodes.end(),
                                    [&](const NumaNode& node) { return node.id == id; });
    if (found == usable.nodes.end()) return std::nullopt;
    return static_cast<std::size_t>(found - usable.nodes.begin());
}

// Position in `usable.nodes` for each local rank.
std::vector<std::size_t> choose_nodes(const Usable& usable, const MachineFacts& facts,
                                      std::size_t workers,
                                      const std::optional<VisibleDevices>& devices) {
    std::vector<std::size_t> chosen;
    for (std::size_t worker = 0; worker < workers; ++worker) {
        const auto spread = worker * usable.nodes.size() / workers;
        chosen.push_back(node_of_gpu(usable, facts, devices, worker).value_or(spread));
    }
    return chosen;
}

Cpus cpus_of_socket(const Usable& usable, int socket) {
    Cpus cpus;
    for (const auto& node : usable.nodes) {
        if (node.socket == socket) cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
    }
    return sorted(std::move(cpus));
}

// Share `turn` of `sharers`, as even as can be, the first ones get one more. Fewer groups than
// sharers: they take turns.
Cpus dealt(const std::vector<Cpus>& groups, std::size_t turn, std::size_t sharers) {
    if (groups.size() < sharers) return groups[turn % groups.size()];
    const auto each = groups.size() / sharers;
    const auto extra = groups.size() % sharers;
    const auto first = turn * each + std::min(turn, extra);
    const auto last = first + each + (turn < extra ? 1 : 0);
    Cpus cpus;
    for (auto i = first; i < last; ++i) cpus.insert(cpus.end(), groups[i].begin(), groups[i].end());
    return sorted(std::move(cpus));
}

std::vector<Cpus> largest_first(std::vector<Cpus> groups) {
    std::stable_sort(groups.begin(), groups.end(), [](const Cpus& left, const Cpus& right) {
        return left.size() > right.size();
    });
    return groups;
}

// `turn` of the `sharers` workers on this NUMA node.
Cpus cpus_for(NumaBinding binding, const MachineFacts& facts, const Usable& usable,
              const NumaNode& node, std::size_t turn, std::size_t sharers) {
    switch (binding) {
        case NumaBinding::off:
            return {};
        case NumaBinding::node:
            return node.cpus;
        case NumaBinding::socket:
            return cpus_of_socket(usable, node.socket);
        case NumaBinding::exclusive:
            return dealt(groups_within(facts.cores, node.cpus), turn, sharers);
        case NumaBinding::core_complex: {
            if (facts.l3_groups.empty()) return node.cpus;
            const auto complexes = largest_first(groups_within(facts.l3_groups, node.cpus));
            return complexes[turn % complexes.size()];
        }
    }
    return {};
}

}  // namespace

std::vector<Placement> place_workers(NumaBinding binding, const MachineFacts& facts, int workers,
                                     const std::optional<VisibleDevices>& devices) {
    std::vector<Placement> placements(static_cast<std::size_t>(workers));
    if (binding == NumaBinding::off || facts.allowed_cpus.empty()) return placements;
    const auto usable = usable_part(facts);
    const auto chosen = choose_nodes(usable, facts, placements.size(), devices);
    std::vector<std::size_t> turns(usable.nodes.size(), 0);
    for (std::size_t worker = 0; worker < placements.size(); ++worker) {
        const auto at = chosen[worker];
        const auto sharers = static_cast<std::size_t>(std::count(chosen.begin(), chosen.end(), at));
        placements[worker].cpus =
            cpus_for(binding, facts, usable, usable.nodes[at], turns[at]++, sharers);
        if (usable.has_memory_nodes) placements[worker].memory_node = usable.nodes[at].id;
    }
    return placements;
}

std::string binding_problem(NumaBinding binding, const MachineFacts& facts, int workers,
                            const std::optional<VisibleDevices>& devices) {
    if (binding != NumaBinding::exclusive && binding != NumaBinding::core_complex) return {};
    if (facts.allowed_cpus.empty() || workers < 1) return {};
    const auto usable = usable_part(facts);
    const auto chosen = choose_nodes(usable, facts, static_cast<std::size_t>(workers), devices);
    const bool exclusive = binding == NumaBinding::exclusive;
    for (std::size_t at = 0; at < usable.nodes.size(); ++at) {
        const auto sharers = static_cast<std::size_t>(std::count(chosen.begin(), chosen.end(), at));
        const auto& kinds = exclusive ? facts.cores : facts.l3_groups;
        const auto groups = groups_within(kinds, usable.nodes[at].cpus).size();
        if (kinds.empty() && !exclusive)
            return "--numa-binding=core-complex: this machine names no L3 caches; whole NUMA nodes "
                   "are used";
        if (sharers <= groups) continue;
        return std::string("--numa-binding=") + (exclusive ? "exclusive" : "core-complex") +
               ": NUMA node " + std::to_string(usable.nodes[at].id) + " has " +
               counted(groups, exclusive ? "usable core" : "usable L3 cache") + " for " +
               counted(sharers, "worker") + ", so some share";
    }
    return {};
}

}  // namespace ddrun::launcher
