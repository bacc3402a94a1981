#include "tests/bench/store_sdk.hpp"

#include "tests/bench/measure.hpp"
#include "worker_sdk/src/control/agent_store.hpp"

#include <deque>
#include <functional>
#include <thread>

namespace ddrun::bench {
namespace {

constexpr auto key = "some/ordinary/key";

struct Client {
    Client(const std::string& address, int round, int rank)
        : link(detail::connect_to_agent(address, Clock::now() + std::chrono::seconds(20)),
               [](int, std::optional<TimePoint>) {}),
          store(link) {
        (void)link.ask(rendezvous::WorkerHello{rendezvous::worker_protocol_version, round, rank},
                       "joining", std::chrono::seconds(20));
    }
    detail::ControlLink link;
    detail::AgentStore store;
    std::vector<std::uint32_t> took;
};

// A request under way, and when it was made.
struct Sent {
    Clock::time_point at;
    std::function<void()> finish;
};

std::function<void()> send_one(Store& store, Operation operation) {
    if (operation == Operation::add)
        return [answer = std::make_shared<Pending<std::int64_t>>(store.async_add(key, 1))] {
            (void)answer->get();
        };
    return [answer = std::make_shared<Pending<std::string>>(store.async_get(key))] {
        (void)answer->get();
    };
}

// Keeps `depth` requests under way.
void keep_asking(Client& client, const Load& load, Clock::time_point end) {
    std::deque<Sent> under_way;
    for (auto now = Clock::now(); now < end || !under_way.empty(); now = Clock::now()) {
        while (now < end && static_cast<int>(under_way.size()) < load.depth)
            under_way.push_back({Clock::now(), send_one(client.store, load.operation)});
        under_way.front().finish();
        client.took.push_back(
            static_cast<std::uint32_t>((Clock::now() - under_way.front().at).count()));
        under_way.pop_front();
    }
}

}  // namespace

Outcome drive_sdk(const std::string& address, int round, int clients, const Load& load,
                  int server_pid) {
    std::vector<std::unique_ptr<Client>> all;
    for (int rank = 0; rank < clients; ++rank)
        all.push_back(std::make_unique<Client>(address, round, rank));
    all.front()->store.set(key, "1");
    const double cpu = cpu_seconds(server_pid);
    const auto begin = Clock::now();
    const auto end = begin + std::chrono::microseconds(static_cast<long>(load.seconds * 1e6));
    std::vector<std::thread> threads;
    for (auto& client : all)
        threads.emplace_back([&, own = client.get()] { keep_asking(*own, load, end); });
    for (auto& thread : threads) thread.join();
    const double wall = seconds_since(begin);
    std::vector<std::uint32_t> took;
    for (const auto& client : all)
        took.insert(took.end(), client->took.begin(), client->took.end());
    const auto operations = static_cast<double>(took.size());
    Outcome outcome;
    outcome.operations_per_second = operations / wall;
    outcome.server_us_per_operation = (cpu_seconds(server_pid) - cpu) * 1e6 / operations;
    put_percentiles(took, outcome);
    return outcome;
}

}  // namespace ddrun::bench
