#include "tests/bench/store_gather.hpp"

#include "rendezvous/protocol/codec.hpp"
#include "tests/bench/measure.hpp"
#include "tests/bench/store_clients.hpp"

#include <ddrun/worker.hpp>

#include <cstring>

namespace ddrun::bench {
namespace {

constexpr std::uint32_t patience_ms = 60'000;
constexpr auto value = "8 bytes.";

std::size_t framed(std::string_view bytes) {
    std::uint32_t length = 0;
    if (bytes.size() < sizeof length) return 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return bytes.size() < sizeof length + length ? 0 : sizeof length + length;
}

std::size_t of_bytes(std::string_view bytes, std::size_t size) {
    return bytes.size() < size ? 0 : size;
}

double meet_once(const std::vector<int>& sockets, const rendezvous::FromWorker& request) {
    const std::string bytes = rendezvous::encode(request);
    const auto begin = Clock::now();
    for (const int socket : sockets) send_all(socket, bytes);
    await_replies(sockets, framed);
    return seconds_since(begin);
}

std::string torch_request(char opcode, const std::string& key) {
    std::string bytes(1, opcode);
    const std::uint64_t size = key.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    return bytes + key;
}
void put(std::string& bytes, std::uint64_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

double torch_barrier(const std::vector<int>& sockets, const std::string& name) {
    constexpr char set = 0, add = 3, wait = 5;
    std::string count = torch_request(add, name);
    put(count, 1);
    const auto begin = Clock::now();
    for (const int socket : sockets) send_all(socket, count);
    await_replies(sockets, [](std::string_view bytes) { return of_bytes(bytes, 8); });
    std::string waiting(1, wait);
    put(waiting, 1);
    waiting += torch_request(0, name + "/all").substr(1);
    std::string last = torch_request(set, name + "/all");
    put(last, 1);
    send_all(sockets.back(), last + "1");
    for (const int socket : sockets) send_all(socket, waiting);
    await_replies(sockets, [](std::string_view bytes) { return of_bytes(bytes, 1); });
    return seconds_since(begin);
}

}  // namespace

Meeting meet_at_agent(const std::vector<int>& sockets, int times) {
    std::vector<double> barriers, gathers;
    for (int i = 0; i < times; ++i)
        barriers.push_back(meet_once(sockets, rendezvous::StoreBarrier{1, "b", 0, patience_ms}));
    for (int i = 0; i < (times + 2) / 3; ++i)
        gathers.push_back(
            meet_once(sockets, rendezvous::StoreAllGather{1, "g", 0, value, patience_ms}));
    return {median(barriers), median(gathers)};
}

Meeting meet_at_torch(const std::vector<int>& sockets, int times) {
    std::vector<double> barriers;
    for (int i = 0; i < times; ++i)
        barriers.push_back(torch_barrier(sockets, "b" + std::to_string(i)));
    return {median(barriers), -1};
}

Meeting meet_as_worker(int times) {
    const std::chrono::milliseconds patience(patience_ms);
    WorkerOptions options;
    options.agent_timeout = patience;
    auto worker = Worker::from_environment(options);
    worker.barrier(patience);
    std::vector<double> barriers, gathers;
    for (int i = 0; i < times; ++i) {
        const auto begin = Clock::now();
        worker.barrier(patience);
        barriers.push_back(seconds_since(begin));
    }
    for (int i = 0; i < (times + 2) / 3; ++i) {
        const auto begin = Clock::now();
        (void)worker.store().all_gather("g", value, patience);
        gathers.push_back(seconds_since(begin));
    }
    return {median(barriers), median(gathers)};
}

}  // namespace ddrun::bench
