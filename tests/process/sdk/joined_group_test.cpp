// Groups of ranks on several nodes: shared memory on each, TCP between them.
#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

using namespace ddrun;
using namespace ddrun::testing;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;
using Nodes = std::vector<int>;

const std::vector<Nodes> shapes = {{1, 1}, {1, 1, 1}, {2, 2},         {1, 2},
                                   {3, 1}, {2, 3, 2}, {1, 1, 1, 1, 1}};

std::vector<RankResult> run_on(const Nodes& nodes, const RankBody& body,
                               const WorkerOptions& options = {}) {
    FakeAgent agent(std::accumulate(nodes.begin(), nodes.end(), 0));
    agent.nodes = nodes;
    return run_ranks(agent, body, options);
}

// Whole numbers: their sums are exact in whatever order they are added.
template <typename T>
T value_of(int rank, std::size_t index) {
    return static_cast<T>((index * 7 + static_cast<std::size_t>(rank) * 3) % 11);
}
template <typename T>
double number(T value) {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
        return static_cast<double>(static_cast<float>(value));
    else
        return static_cast<double>(value);
}
template <typename T>
T make(int rank, std::size_t index) {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
        return T(value_of<float>(rank, index));
    else
        return value_of<T>(rank, index);
}
double sum_of(int world, std::size_t index) {
    double sum = 0;
    for (int rank = 0; rank < world; ++rank) sum += value_of<double>(rank, index);
    return sum;
}

void demand(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

template <typename T>
void all_operations(ProcessGroup& group, std::size_t count) {
    const int world = group.size();
    const int self = group.rank();
    const auto ranks = static_cast<std::size_t>(world);
    const std::string what = "count " + std::to_string(count);

    std::vector<T> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = make<T>(self, i);
    group.all_reduce(data);
    for (std::size_t i = 0; i < count; ++i)
        demand(number(data[i]) == sum_of(world, i), "all_reduce, " + what);

    for (std::size_t i = 0; i < count; ++i) data[i] = make<T>(self, i);
    group.all_reduce(data, ReduceOp::max);
    for (std::size_t i = 0; i < count; ++i) {
        double largest = 0;
        for (int rank = 0; rank < world; ++rank)
            largest = std::max(largest, value_of<double>(rank, i));
        demand(number(data[i]) == largest, "max, " + what);
    }

    const int root = static_cast<int>(count) % world;
    for (std::size_t i = 0; i < count; ++i) data[i] = make<T>(self, i);
    group.broadcast(data, root);
    for (std::size_t i = 0; i < count; ++i)
        demand(number(data[i]) == value_of<double>(root, i), "broadcast, " + what);

    std::vector<T> all(count * ranks);
    for (std::size_t i = 0; i < count; ++i) data[i] = make<T>(self, i);
    group.all_gather(data, all);
    for (std::size_t i = 0; i < all.size(); ++i)
        demand(number(all[i]) == value_of<double>(static_cast<int>(i / count), i % count),
               "all_gather, " + what);

    for (std::size_t i = 0; i < all.size(); ++i) all[i] = make<T>(self, i);
    group.reduce_scatter(all, data);
    for (std::size_t i = 0; i < count; ++i)
        demand(number(data[i]) == sum_of(world, static_cast<std::size_t>(self) * count + i),
               "reduce_scatter, " + what);
    group.barrier();
}

}  // namespace

TEST_CASE("every operation over nodes of all shapes, types and odd sizes") {
    for (const Nodes& nodes : shapes) {
        const auto ranks = run_on(nodes, [](Worker& worker, std::ostream& say) {
            auto& group = worker.process_group();
            for (const std::size_t count : {0u, 1u, 2u, 5u, 63u, 64u, 65u, 1000u, 70001u})
                all_operations<float>(group, count);
            all_operations<double>(group, 1001);
            all_operations<std::int32_t>(group, 1001);
            all_operations<std::int64_t>(group, 1001);
            all_operations<std::uint8_t>(group, 1001);
            all_operations<Float16>(group, 1001);
            all_operations<BFloat16>(group, 1001);
            say << "done";
        });
        CAPTURE(nodes.size());
        for (const auto& rank : ranks) CHECK(rank.said == "done");
    }
}

TEST_CASE("sums whose order matters are the same bytes on every rank, also from shared memory") {
    for (const Nodes& nodes : {Nodes{1, 1, 1}, Nodes{2, 3}}) {
        const auto ranks = run_on(nodes, [](Worker& worker, std::ostream& say) {
            auto& group = worker.process_group();
            for (const bool shared : {false, true}) {
                std::vector<float> own(300'007);
                const std::span<float> data =
                    shared ? group.allocate<float>(own.size()) : std::span<float>(own);
                for (std::size_t i = 0; i < data.size(); ++i)
                    data[i] = 1.0f / static_cast<float>(i * 3 + 7 +
                                                        static_cast<std::size_t>(worker.rank()));
                group.all_reduce(data, ReduceOp::avg);
                std::string bytes(reinterpret_cast<const char*>(data.data()), data.size_bytes());
                say << std::hash<std::string>()(bytes) << ' ';
                double expected = 0;
                for (int rank = 0; rank < group.size(); ++rank)
                    expected += 1.0 / static_cast<double>(7 + rank) / group.size();
                demand(std::abs(data[0] - expected) < 1e-6, "average");
            }
        });
        for (const auto& rank : ranks) CHECK(rank.said == ranks[0].said);
        CHECK(ranks[0].said.size() > 10);
    }
}

TEST_CASE("some of the ranks make a group of their own, over nodes and on one") {
    const auto ranks = run_on({2, 2}, [](Worker& worker, std::ostream& say) {
        const int self = worker.rank();
        const std::vector<int> mine = self % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3};
        const auto across = worker.new_group(mine);
        const auto along = worker.new_group(self < 2 ? std::vector{0, 1} : std::vector{2, 3});
        const auto again = worker.new_group(mine);
        const auto alone = worker.new_group({self});
        for (auto* group : {across.get(), along.get(), again.get(), alone.get()}) {
            std::vector<std::int32_t> sum = {1 << (4 * self)};
            group->all_reduce(sum);
            say << std::hex << sum[0] << ':' << group->rank() << '/' << group->size() << ' ';
        }
        all_operations<float>(*across, 1000);
        all_operations<float>(worker.process_group(), 1000);
    });
    CHECK(ranks[0].said == "101:0/2 11:0/2 101:0/2 1:0/1 ");
    CHECK(ranks[3].said == "1010:1/2 1100:1/2 1010:1/2 1000:0/1 ");
}

TEST_CASE("groups that cannot be are refused in words") {
    const auto ranks = run_on({1, 1}, [](Worker& worker, std::ostream& say) {
        for (const auto& wrong :
             {std::vector<int>{}, {1, 0}, {0, 0, 1}, {0, 2}, {-1, 0}, {1 - worker.rank()}}) {
            try {
                (void)worker.new_group(wrong);
            } catch (const Error& error) {
                say << (error.kind() == ErrorKind::invalid_use);
            }
        }
    });
    CHECK(ranks[0].said == "111111");
}

TEST_CASE("a rank killed on one node is named on every rank of all nodes, at every operation") {
    for (const bool notice : {true, false})
        for (int at = 0; at < 6; ++at) {
            FakeAgent agent(5);
            agent.nodes = {2, 1, 2};
            agent.tells_of_deaths = notice;
            const int victim = at % 5;
            const auto ranks = run_ranks(agent, [&](Worker& worker, std::ostream& say) {
                auto& group = worker.process_group();
                worker.barrier();  // all have made it
                std::vector<float> data(70'000, 1.0f);
                std::vector<float> all(data.size() * 5);
                for (int i = 0;; ++i) {
                    if (i == at && worker.rank() == victim) ::raise(SIGKILL);
                    try {
                        if (i % 4 == 0) group.all_reduce(data);
                        if (i % 4 == 1) group.broadcast(data, 1);
                        if (i % 4 == 2) group.all_gather(data, all);
                        if (i % 4 == 3) group.barrier();
                    } catch (const PeerLost& error) {
                        say << "lost " << error.rank() << " at " << i;
                        return;
                    }
                }
            });
            CAPTURE(notice, at, victim);
            // Others may still be in the operation that the victim had finished.
            const std::string lost = "lost " + std::to_string(victim) + " at ";
            for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
                if (static_cast<int>(rank) == victim) continue;
                const bool as_it_should = ranks[rank].said == lost + std::to_string(at) ||
                                          ranks[rank].said == lost + std::to_string(at - 1);
                CAPTURE(rank, ranks[rank].said);
                CHECK(as_it_should);
            }
        }
}

TEST_CASE("a rank stopped on one node is named on every rank when the deadline passes") {
    for (const int victim : {0, 1, 3}) {
        const auto ranks = run_on({2, 2}, [&](Worker& worker, std::ostream& say) {
            auto& group = worker.process_group();
            std::vector<float> data(70'000, 1.0f);
            group.all_reduce(data);
            if (worker.rank() == victim) ::raise(SIGSTOP);
            try {
                group.all_reduce(data, ReduceOp::sum, {.timeout = 300ms});
            } catch (const TimedOut& error) {
                for (const int rank : error.missing()) say << "late " << rank;
                say << (std::string(error.what()).find("all_reduce 2 (sum of 70000 float32)") == 0);
            }
        });
        CAPTURE(victim);
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            if (static_cast<int>(rank) != victim)
                CHECK(ranks[rank].said == "late " + std::to_string(victim) + "1");
    }
}

TEST_CASE("ranks of different nodes in different calls are told who called what") {
    for (const Nodes& nodes : {Nodes{1, 1}, Nodes{2, 1, 1}}) {
        const auto ranks = run_on(nodes, [](Worker& worker, std::ostream&) {
            auto& group = worker.process_group();
            std::vector<float> data(worker.rank() + 1 == worker.world_size() ? 10 : 20);
            group.all_reduce(data);
        });
        for (const auto& rank : ranks) {
            CHECK(rank.said == ranks[0].said);
            CHECK(rank.said.find("desynchronised: the ranks called different collectives") == 0);
            CHECK(rank.said.find("called all_reduce 1 (sum of 20 float32)") != std::string::npos);
            CHECK(rank.said.find("called all_reduce 1 (sum of 10 float32)") != std::string::npos);
        }
    }
}

TEST_CASE("a stop request on one node reaches the ranks of all at the same operation") {
    for (const Nodes& nodes : {Nodes{1, 1, 1}, Nodes{2, 2}}) {
        const auto ranks = run_on(nodes, [](Worker& worker, std::ostream& say) {
            (void)worker.should_stop();
            auto& group = worker.process_group();
            std::vector<float> data(10);
            int steps = 0;
            for (; !worker.should_stop(); ++steps) {
                if (steps == 5 && worker.rank() == worker.world_size() - 1) ::raise(SIGTERM);
                group.all_reduce(data);
            }
            say << steps;
        });
        for (const auto& rank : ranks) CHECK(rank.said == "6");
    }
}

TEST_CASE("a rank that leaves early is named to those that go on") {
    const auto ranks = run_on({1, 2}, [](Worker& worker, std::ostream&) {
        worker.process_group().barrier();
        if (worker.rank() == 0) return;
        worker.process_group().barrier();
    });
    CHECK(ranks[1].said.find("peer_lost: ") == 0);
    CHECK(ranks[1].said.find("rank 0 has ended its Worker and left the group") !=
          std::string::npos);
    CHECK(ranks[2].said == ranks[1].said);
}

TEST_CASE("a group that one rank never makes is given up by its deadline") {
    WorkerOptions impatient;
    impatient.collective_timeout = 400ms;
    const auto ranks = run_on(
        {1, 1, 1},
        [](Worker& worker, std::ostream&) {
            if (worker.rank() == 1) (void)worker.store().get("never", 2s);
            (void)worker.process_group();
        },
        impatient);
    CHECK(ranks[0].exited_with(75));
    CHECK(ranks[2].exited_with(75));
    CHECK(ranks[0].said.find("timed_out") == 0);
}

TEST_CASE("ranks killed at random moments over nodes: all others end with its name") {
    const auto seed = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    INFO("seed " << seed);
    std::mt19937_64 dice(seed);
    for (int trial = 0; trial < 12; ++trial) {
        const Nodes nodes = shapes[dice() % shapes.size()];
        const int world = std::accumulate(nodes.begin(), nodes.end(), 0);
        const int victim = static_cast<int>(dice() % static_cast<unsigned>(world));
        FakeAgent agent(world);
        agent.nodes = nodes;
        agent.tells_of_deaths = dice() % 2 == 0;
        const auto delay = std::chrono::microseconds(dice() % 30000);
        const std::size_t elements = dice() % 300'000 + 1;
        int ready = 0;
        agent.on_message = [&](int, const rendezvous::FromWorker& message) {
            if (std::holds_alternative<rendezvous::Progress>(message) && ++ready == world)
                agent.after(delay, [&] { agent.kill(victim, SIGKILL); });
        };
        const auto ranks = run_ranks(agent, [&](Worker& worker, std::ostream& say) {
            auto& group = worker.process_group();
            std::vector<float> data(elements, 1.0f);
            group.barrier();
            worker.progress(0);
            try {
                for (int i = 0;; ++i) {
                    if (i % 3 == 0) group.all_reduce(data);
                    if (i % 3 == 1) group.broadcast(data, i % group.size());
                    if (i % 3 == 2) group.barrier();
                }
            } catch (const PeerLost& error) {
                say << "lost " << error.rank();
            }
        });
        CAPTURE(trial, world, nodes.size(), victim, agent.tells_of_deaths, delay.count(), elements);
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            if (static_cast<int>(rank) != victim)
                CHECK(ranks[rank].said == "lost " + std::to_string(victim));
    }
}
