// A worker that says the first of its job's NCCL ids as a number, each round anew; rank 0 of the
// first round then fails.
#include <ddrun/worker.hpp>

#include <cstdio>
#include <functional>
#include <string>

int main() {
    try {
        auto worker = ddrun::Worker::from_environment();
        const auto ids = worker.nccl_unique_ids();
        const std::string id(ids.front().bytes, sizeof ids.front().bytes);
        std::printf("round %d: %zu\n", worker.round(), std::hash<std::string>()(id));
        std::fflush(stdout);
        worker.barrier();
        return worker.rank() == 0 && worker.round() == 1 ? 1 : 0;
    } catch (const ddrun::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_code();
    }
}
