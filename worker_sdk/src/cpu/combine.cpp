#include "worker_sdk/src/cpu/combine.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace ddrun::detail {
namespace {

constexpr std::size_t block_bytes = 16 * 1024;  // stays in the first-level cache

// Signed overflow is undefined, unsigned wraps; the bits are the same.
template <typename T>
T sum_of(T a, T b) {
    if constexpr (std::signed_integral<T>) {
        using Wrapping = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
        return static_cast<T>(a + b);
    }
}

// b != b holds for NaN only: it wins over any number, on whichever side it stands.
template <typename T>
T min_of(T a, T b) {
    return b < a || b != b ? b : a;
}
template <typename T>
T max_of(T a, T b) {
    return b > a || b != b ? b : a;
}

template <typename T, typename Combine>
void fold(T* __restrict into, const T* __restrict from, std::size_t count, Combine combine_two) {
    for (std::size_t i = 0; i < count; ++i) into[i] = combine_two(into[i], from[i]);
}

template <typename T>
void fold(ReduceOp op, T* into, const T* from, std::size_t count) {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::avg:
            return fold(into, from, count, sum_of<T>);
        case ReduceOp::min:
            return fold(into, from, count, min_of<T>);
        case ReduceOp::max:
            return fold(into, from, count, max_of<T>);
    }
}

template <typename T>
void divide(T* values, std::size_t count, std::size_t by) {
    if constexpr (std::floating_point<T>)
        for (std::size_t i = 0; i < count; ++i) values[i] /= static_cast<T>(by);
}

template <typename T>
void combine_typed(ReduceOp op, std::span<const std::byte* const> sources,
                   std::span<std::byte* const> sinks, std::size_t count) {
    constexpr std::size_t per_block = block_bytes / sizeof(T);
    alignas(64) std::array<T, per_block> block;
    for (std::size_t first = 0; first < count; first += per_block) {
        const std::size_t here = std::min(per_block, count - first);
        const std::size_t at = first * sizeof(T);
        std::memcpy(block.data(), sources.front() + at, here * sizeof(T));
        for (const std::byte* source : sources.subspan(1))
            fold(op, block.data(), reinterpret_cast<const T*>(source + at), here);
        if (op == ReduceOp::avg) divide(block.data(), here, sources.size());
        for (std::byte* sink : sinks) std::memcpy(sink + at, block.data(), here * sizeof(T));
    }
}

}  // namespace

void combine(ElementType type, ReduceOp op, std::span<const std::byte* const> sources,
             std::span<std::byte* const> sinks, std::size_t count) {
    switch (type) {
        case ElementType::float32:
            return combine_typed<float>(op, sources, sinks, count);
        case ElementType::float64:
            return combine_typed<double>(op, sources, sinks, count);
        case ElementType::int32:
            return combine_typed<std::int32_t>(op, sources, sinks, count);
        case ElementType::int64:
            return combine_typed<std::int64_t>(op, sources, sinks, count);
        case ElementType::uint8:
            return combine_typed<std::uint8_t>(op, sources, sinks, count);
    }
}

}  // namespace ddrun::detail
