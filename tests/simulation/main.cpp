// simulation --seeds N [--from SEED] [--plant BUG]  many jobs; the first broken invariant ends it
// simulation --seed SEED [--plant BUG]              one job, with what happened
// simulation --seeds N --every 1                    goes on after a broken invariant; a line for
// each With --plant it succeeds where the bug is found.

#include "tests/simulation/world.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string>

using ddrun::simulation::World;

namespace {

using ddrun::simulation::Plants;

using Counts = std::map<std::string, std::uint64_t>;

bool run_one(std::uint64_t seed, const Plants& plants, bool trace, Counts& counts) {
    World world(seed, plants, trace);
    try {
        world.run();
        for (const std::string& what : world.seen()) ++counts[what];
        return true;
    } catch (const std::exception& broken) {
        std::printf("seed %llu: %s\n%s", static_cast<unsigned long long>(seed), broken.what(),
                    world.describe().c_str());
        return false;
    }
}

int run_many(std::uint64_t from, std::uint64_t count, const Plants& plants) {
    Counts counts;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        if (run_one(seed, plants, false, counts)) continue;
        std::printf("replay: simulation --seed %llu\n", static_cast<unsigned long long>(seed));
        return 1;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::printf("%llu seeds from %llu: every invariant held, %.2f ms a seed\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(from),
                took.count() / static_cast<double>(count));
    for (const auto& [what, times] : counts)
        std::printf("%8llu  %s\n", static_cast<unsigned long long>(times), what.c_str());
    return 0;
}

int list_broken(std::uint64_t from, std::uint64_t count, const Plants& plants) {
    int broken_seeds = 0;
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        World world(seed, plants, false);
        try {
            world.run();
        } catch (const std::exception& broken) {
            ++broken_seeds;
            std::printf("%llu: %s\n", static_cast<unsigned long long>(seed), broken.what());
            std::fflush(stdout);
        }
    }
    std::printf("%d of %llu seeds broken\n", broken_seeds, static_cast<unsigned long long>(count));
    return broken_seeds == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t from = 1;
    std::optional<std::uint64_t> one, count;
    Plants plants;
    bool planted = false;
    bool every = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
        if (flag == "--seed") one = value;
        if (flag == "--seeds") count = value;
        if (flag == "--from") from = value;
        if (flag == "--every") every = true;
        if (flag == "--plant") planted = plants.plant(argv[i + 1]);
    }
    Counts counts;
    if (one) return run_one(*one, plants, true, counts) ? 0 : 1;
    if (count && every) return list_broken(from, *count, plants);
    if (count) return (run_many(from, *count, plants) == 0) != planted ? 0 : 1;
    std::fprintf(stderr, "usage: simulation --seeds N [--from SEED] | --seed SEED\n");
    return 2;
}
