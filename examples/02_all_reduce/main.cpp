// The sum of 25 MB of every rank, on every rank: what a training step does with its gradients.
#include <ddrun/worker.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::size_t megabyte = 1000 * 1000;
constexpr std::size_t elements = 25 * megabyte / sizeof(float);
constexpr int repetitions = 20;

// Rank r brings r + 1 everywhere, so every element must become 1 + 2 + ... + n.
bool sum_is_right(ddrun::ProcessGroup& group, std::span<float> data) {
    std::fill(data.begin(), data.end(), static_cast<float>(group.rank() + 1));
    group.all_reduce(data);
    const int n = group.size();
    const auto expected = static_cast<float>(n * (n + 1) / 2);
    return std::all_of(data.begin(), data.end(), [&](float x) { return x == expected; });
}

Milliseconds median_time(ddrun::ProcessGroup& group, std::span<float> data) {
    std::vector<Milliseconds> times;
    for (int i = 0; i < repetitions; ++i) {
        group.barrier();
        const auto start = std::chrono::steady_clock::now();
        group.all_reduce(data, ddrun::ReduceOp::avg);
        times.emplace_back(std::chrono::steady_clock::now() - start);
    }
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return times[repetitions / 2];
}

bool measure(ddrun::Worker& worker, const char* where, std::span<float> data) {
    if (!sum_is_right(worker.process_group(), data)) {
        std::fprintf(stderr, "rank %d: the sum is wrong\n", worker.rank());
        return false;
    }
    if (worker.world_size() == 1) return true;
    const auto time = median_time(worker.process_group(), data);
    char line[128];
    std::snprintf(line, sizeof line, "25 MB in %s: %.2f ms, %.1f GB/s", where, time.count(),
                  static_cast<double>(data.size_bytes()) / time.count() / megabyte);
    worker.log().info(line);
    return true;
}

}  // namespace

int main() {
    try {
        auto worker = ddrun::Worker::from_environment();
        std::vector<float> ordinary(elements);
        // The other ranks reach this memory directly: no copies. The place for gradients.
        const auto shared = worker.process_group().allocate<float>(elements);
        worker.log().info("all-reduce among ", worker.world_size(), " ranks");
        const bool right = measure(worker, "shared memory", shared) &&
                           measure(worker, "ordinary memory", ordinary);
        return right ? 0 : 1;
    } catch (const ddrun::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_code();
    }
}
