#pragma once

#include <cstdint>

namespace train_gpt {

// Chance without state: a number depends only on what it is for, so a restarted run or another
// number of ranks draws the same ones. The mixing steps are those of SplitMix64.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

template <typename... Keys>
constexpr std::uint64_t counter_hash(std::uint64_t seed, Keys... keys) {
    std::uint64_t state = mix_bits(seed);
    ((state = mix_bits(state ^ static_cast<std::uint64_t>(keys))), ...);
    return state;
}

// Uniform in (0, 1); never 0, so its logarithm exists.
constexpr double to_unit_interval(std::uint64_t bits) {
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53;
}

}  // namespace train_gpt
