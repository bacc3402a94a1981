#pragma once

#include <cstdint>
#include <random>
#include <string>

// Chance for property tests. A test prints its seed when it fails (INFO), so one number replays it.
namespace ddrun::testing {

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}

    // lowest..highest, both included.
    std::int64_t between(std::int64_t lowest, std::int64_t highest) {
        const auto range = static_cast<std::uint64_t>(highest - lowest) + 1;
        return lowest + static_cast<std::int64_t>(range == 0 ? engine_() : engine_() % range);
    }
    int number(int lowest, int highest) { return static_cast<int>(between(lowest, highest)); }
    std::uint64_t bits() { return engine_(); }
    bool one_in(int n) { return number(1, n) == 1; }
    std::string bytes(std::size_t most) {
        std::string text(static_cast<std::size_t>(between(0, static_cast<std::int64_t>(most))),
                         '\0');
        for (char& c : text) c = static_cast<char>(engine_() & 0xffu);
        return text;
    }

  private:
    std::mt19937_64 engine_;  // the same on every platform, unlike the distributions of <random>
};

}  // namespace ddrun::testing
