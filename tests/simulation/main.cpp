// simulation --seeds N [--from SEED]   many jobs; the first broken invariant ends it, with its seed
// simulation --seed SEED               one job, with what happened

#include "tests/simulation/world.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

using ddrun::simulation::World;

namespace {

bool run_one(std::uint64_t seed, bool trace) {
    World world(seed, trace);
    try {
        world.run();
        return true;
    } catch (const std::exception& broken) {
        std::printf("seed %llu: %s\n%s", static_cast<unsigned long long>(seed), broken.what(),
                    world.describe().c_str());
        return false;
    }
}

int run_many(std::uint64_t from, std::uint64_t count) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        if (run_one(seed, false)) continue;
        std::printf("replay: simulation --seed %llu\n", static_cast<unsigned long long>(seed));
        return 1;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::printf("%llu seeds from %llu: every invariant held, %.2f ms a seed\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(from),
                took.count() / static_cast<double>(count));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t from = 1;
    std::optional<std::uint64_t> one, count;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
        if (flag == "--seed") one = value;
        if (flag == "--seeds") count = value;
        if (flag == "--from") from = value;
    }
    if (one) return run_one(*one, true) ? 0 : 1;
    if (count) return run_many(from, *count);
    std::fprintf(stderr, "usage: simulation --seeds N [--from SEED] | --seed SEED\n");
    return 2;
}
