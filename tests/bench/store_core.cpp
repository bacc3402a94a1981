// The store of one round without sockets: what its decisions alone cost.
//   bench_store_core [operations]
#include "rendezvous/core/key_value_store.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ddrun;
using namespace ddrun::rendezvous;

namespace {

constexpr int clients = 256;
constexpr int keys_each = 16;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string key_of(int client, int number) {
    return "worker/" + std::to_string(client) + "/step/" + std::to_string(number % keys_each);
}

// Requests are made beforehand: only the store is measured.
template <typename Make>
void measure(const char* what, int operations, KeyValueStore& store, Make make) {
    std::vector<StoreRequest> requests;
    for (int i = 0; i < operations; ++i) requests.push_back({i % clients, make(i)});
    const auto start = std::chrono::steady_clock::now();
    std::size_t answers = 0;
    for (StoreRequest& request : requests) {
        answers += store.step(std::move(request), start).size();
    }
    const double time = seconds_since(start);
    std::printf("%-22s %9.0f operations/s (%zu answers)\n", what, operations / time, answers);
}

void measure_gathering(const char* what, int ranks, bool all_gather) {
    KeyValueStore store(ranks);
    const auto start = std::chrono::steady_clock::now();
    for (int rank = 0; rank < ranks; ++rank) {
        FromWorker request = StoreBarrier{1, "b", 0, 60'000};
        if (all_gather) request = StoreAllGather{1, "g", 0, "12345678", 60'000};
        (void)store.step({rank, std::move(request)}, start);
    }
    std::printf("%-12s of %5d    %9.2f ms\n", what, ranks, seconds_since(start) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
    const int operations = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
    KeyValueStore store(clients);
    const auto id = [](int i) { return static_cast<std::uint64_t>(i + 1); };
    const auto key = [](int i) { return key_of(i % clients, i / clients); };
    const std::string value(64, 'v');
    measure("set", operations, store, [&](int i) { return StoreSet{id(i), key(i), value}; });
    measure("get", operations, store, [&](int i) { return StoreGet{id(i), key(i), 0}; });
    measure("add, one counter", operations, store, [&](int i) {
        return StoreAdd{id(i), "counter", 1};
    });
    for (const int ranks : {1000, 4000}) {
        measure_gathering("barrier", ranks, false);
        measure_gathering("all-gather", ranks, true);
    }
}
