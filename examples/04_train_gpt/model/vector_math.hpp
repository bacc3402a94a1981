#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace train_gpt {

constexpr auto vector_lanes = 16;

// Reduces term(0..count-1) in a written order: one partial result per lane, then the lanes in
// pairs. The compiler can use vector registers without being allowed to reorder additions.
template <typename Real, typename Term, typename Combine>
Real reduce_lanes(int count, Real neutral, Term term, Combine combine) {
    std::array<Real, vector_lanes> partial;
    partial.fill(neutral);
    int index = 0;
    for (; index + vector_lanes <= count; index += vector_lanes) {
        for (int lane = 0; lane < vector_lanes; ++lane) {
            partial[lane] = combine(partial[lane], term(index + lane));
        }
    }
    for (int lane = 0; index < count; ++index, ++lane) {
        partial[lane] = combine(partial[lane], term(index));
    }
    for (int width = vector_lanes / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) {
            partial[lane] = combine(partial[lane], partial[lane + width]);
        }
    }
    return partial[0];
}

template <typename Real, typename Term>
Real lane_sum(int count, Term term) {
    return reduce_lanes(count, Real{0}, term, [](Real a, Real b) { return a + b; });
}

template <typename Real>
Real lane_maximum(int count, const Real* values) {
    return reduce_lanes(
        count, values[0], [&](int index) { return values[index]; },
        [](Real a, Real b) { return a > b ? a : b; });
}

// exp(x) for x <= 0, which is all that softmax and GELU need.
inline double decaying_exponential(double x) {
    return std::exp(x);
}

// The library's expf is a call per element; this one is straight-line arithmetic that the compiler
// turns into vector code (a second bound would bring branches back). Relative error below 2e-7;
// below -87 the result stays at exp(-87).
inline float decaying_exponential(float x) {
    constexpr auto log2_e = 1.44269504088896341f;
    constexpr auto ln2_high = 0.693359375f;  // few bits: its product with a small integer is exact
    constexpr auto ln2_low = -2.12194440e-4f;
    constexpr auto rounder = 0x1.8p23f;  // adding it leaves no bits behind the point
    const float bounded = x < -87.0f ? -87.0f : x;
    const float shifted = bounded * log2_e + rounder;
    const float whole = shifted - rounder;
    const float rest = (bounded - whole * ln2_high) - whole * ln2_low;
    // Taylor's series to degree 7 on |rest| <= ln(2) / 2.
    float series = 1.0f / 5040.0f;
    series = series * rest + 1.0f / 720.0f;
    series = series * rest + 1.0f / 120.0f;
    series = series * rest + 1.0f / 24.0f;
    series = series * rest + 1.0f / 6.0f;
    series = series * rest + 0.5f;
    series = series * rest + 1.0f;
    series = series * rest + 1.0f;
    // The low bits of `shifted` are the whole number; added to the exponent they multiply by
    // 2^whole.
    const auto exponent_bits = std::bit_cast<std::uint32_t>(shifted) << 23;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(series) + exponent_bits);
}

}  // namespace train_gpt
