#include "launcher/core/numa_plan.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <algorithm>
#include <set>

using namespace ddrun;
using namespace ddrun::launcher;

namespace {

std::vector<int> range(int first, int last) {
    std::vector<int> cpus;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    return cpus;
}

// Two sockets, two NUMA nodes each, four cores a node; CPU c and c + 16 are siblings.
MachineFacts big_machine() {
    MachineFacts facts;
    facts.allowed_cpus = range(0, 31);
    for (int node = 0; node < 4; ++node) {
        auto cpus = range(4 * node, 4 * node + 3);
        const auto siblings = range(16 + 4 * node, 16 + 4 * node + 3);
        cpus.insert(cpus.end(), siblings.begin(), siblings.end());
        facts.numa_nodes.push_back({node, node / 2, cpus});
        facts.l3_groups.push_back({4 * node, 4 * node + 1, 16 + 4 * node, 17 + 4 * node});
        facts.l3_groups.push_back({4 * node + 2, 4 * node + 3, 18 + 4 * node, 19 + 4 * node});
    }
    for (int core = 0; core < 16; ++core) facts.cores.push_back({core, core + 16});
    return facts;
}

std::vector<Placement> place(NumaBinding binding, const MachineFacts& facts, int workers) {
    JobSpec spec;
    return place_workers(binding, facts, workers, visible_devices(spec, facts));
}

}  // namespace

TEST_CASE("off binds nothing") {
    for (const auto& placement : place(NumaBinding::off, big_machine(), 3)) {
        CHECK(placement.cpus.empty());
        CHECK_FALSE(placement.memory_node);
    }
}

TEST_CASE("without GPUs, neighbours share NUMA nodes in blocks") {
    const auto placements = place(NumaBinding::node, big_machine(), 8);
    for (int worker = 0; worker < 8; ++worker) {
        CHECK(placements[static_cast<std::size_t>(worker)].memory_node == worker / 2);
    }
    CHECK(placements[2].cpus == std::vector<int>{4, 5, 6, 7, 20, 21, 22, 23});
}

TEST_CASE("fewer workers than NUMA nodes are spread over them") {
    const auto placements = place(NumaBinding::node, big_machine(), 2);
    CHECK(placements[0].memory_node == 0);
    CHECK(placements[1].memory_node == 2);  // the other socket
}

TEST_CASE("local rank i lives on the NUMA node of visible GPU i") {
    auto facts = big_machine();
    facts.device_nodes = 4;
    facts.gpu_numa_nodes = {3, 3, 1, -1};
    auto placements = place(NumaBinding::node, facts, 4);
    CHECK(placements[0].memory_node == 3);
    CHECK(placements[1].memory_node == 3);
    CHECK(placements[2].memory_node == 1);
    CHECK(placements[3].memory_node == 3);  // unknown: where the spread puts rank 3 of 4
    facts.environment["CUDA_VISIBLE_DEVICES"] = "2,0";
    placements = place(NumaBinding::node, facts, 2);
    CHECK(placements[0].memory_node == 1);
    CHECK(placements[1].memory_node == 3);
}

TEST_CASE("a GPU named by UUID is spread like one that nobody knows") {
    auto facts = big_machine();
    facts.gpu_numa_nodes = {3, 3};
    facts.environment["CUDA_VISIBLE_DEVICES"] = "GPU-1,GPU-2";
    CHECK(place(NumaBinding::node, facts, 2)[0].memory_node == 0);
}

TEST_CASE("socket: every CPU of the socket, memory near the worker's own node") {
    const auto placements = place(NumaBinding::socket, big_machine(), 4);
    CHECK(placements[1].cpus.size() == 16);
    CHECK(placements[1].cpus.front() == 0);
    CHECK(placements[1].memory_node == 1);
    CHECK(placements[2].cpus.front() == 8);
}

TEST_CASE("exclusive: whole cores, as even as can be, the first ones get one more") {
    auto facts = big_machine();
    facts.device_nodes = 3;
    facts.gpu_numa_nodes = {0, 0, 0};
    const auto placements = place(NumaBinding::exclusive, facts, 3);
    CHECK(placements[0].cpus == std::vector<int>{0, 1, 16, 17});
    CHECK(placements[1].cpus == std::vector<int>{2, 18});
    CHECK(placements[2].cpus == std::vector<int>{3, 19});
}

TEST_CASE("core_complex: one L3 group each, the largest first, then around again") {
    auto facts = big_machine();
    facts.allowed_cpus.erase(facts.allowed_cpus.begin());  // CPU 0: the first group is the smaller
    facts.device_nodes = 3;
    facts.gpu_numa_nodes = {0, 0, 0};
    const auto placements = place(NumaBinding::core_complex, facts, 3);
    CHECK(placements[0].cpus == std::vector<int>{2, 3, 18, 19});
    CHECK(placements[1].cpus == std::vector<int>{1, 16, 17});
    CHECK(placements[2].cpus == placements[0].cpus);
}

TEST_CASE("only allowed CPUs are used, and NUMA nodes without one do not exist") {
    auto facts = big_machine();
    facts.allowed_cpus = {5, 6, 30};
    const auto placements = place(NumaBinding::node, facts, 2);
    CHECK(placements[0].cpus == std::vector<int>{5, 6});
    CHECK(placements[1].cpus == std::vector<int>{30});
}

TEST_CASE("one NUMA node needs no memory policy; no NUMA facts at all is one node") {
    MachineFacts plain;
    plain.allowed_cpus = {0, 1, 2, 3};
    const auto placements = place(NumaBinding::exclusive, plain, 2);
    CHECK(placements[0].cpus == std::vector<int>{0, 1});
    CHECK(placements[1].cpus == std::vector<int>{2, 3});
    CHECK_FALSE(placements[0].memory_node);
}

TEST_CASE("too few cores: workers take turns, and the problem is named") {
    MachineFacts small;
    small.allowed_cpus = {0, 1};
    small.cores = {{0}, {1}};
    const auto placements = place(NumaBinding::exclusive, small, 3);
    CHECK(placements[2].cpus == std::vector<int>{0});
    CHECK(binding_problem(NumaBinding::exclusive, small, 2, std::nullopt).empty());
    CHECK_FALSE(binding_problem(NumaBinding::exclusive, small, 3, std::nullopt).empty());
    CHECK(binding_problem(NumaBinding::node, small, 3, std::nullopt).empty());
    CHECK(binding_problem(NumaBinding::core_complex, small, 1, std::nullopt).find("no L3") !=
          std::string::npos);
}

TEST_CASE("placements hold their promises on random machines (500 seeds)") {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        INFO("seed " << seed);
        testing::Dice dice(seed);
        auto facts = big_machine();
        std::vector<int> allowed;
        for (const int cpu : facts.allowed_cpus) {
            if (dice.one_in(2)) allowed.push_back(cpu);
        }
        if (allowed.empty()) allowed = {7};
        facts.allowed_cpus = allowed;
        if (dice.one_in(2)) {
            facts.device_nodes = 8;
            for (int gpu = 0; gpu < 8; ++gpu) facts.gpu_numa_nodes.push_back(dice.number(-1, 4));
        }
        const auto binding = static_cast<NumaBinding>(dice.number(1, 4));
        const int workers = dice.number(1, 40);
        const auto placements = place(binding, facts, workers);
        const auto devices = visible_devices(JobSpec{}, facts);
        const bool alone = binding == NumaBinding::exclusive &&
                           binding_problem(binding, facts, workers, devices).empty();
        std::multiset<int> used;
        for (const auto& placement : placements) {
            CHECK_FALSE(placement.cpus.empty());
            CHECK(std::is_sorted(placement.cpus.begin(), placement.cpus.end()));
            CHECK(std::includes(allowed.begin(), allowed.end(), placement.cpus.begin(),
                                placement.cpus.end()));
            used.insert(placement.cpus.begin(), placement.cpus.end());
        }
        if (alone) {
            for (const int cpu : allowed) CHECK(used.count(cpu) <= 1);
        }
    }
}
