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

// What elements are combined as.
template <typename T>
using Working = std::conditional_t<std::same_as<T, Float16> || std::same_as<T, BFloat16>, float, T>;

template <typename T>
constexpr bool is_half = !std::same_as<T, Working<T>>;

template <typename T>
void load(Working<T>* into, const std::byte* from, std::size_t count) {
    if constexpr (is_half<T>)
        for (std::size_t i = 0; i < count; ++i)
            into[i] = static_cast<float>(reinterpret_cast<const T*>(from)[i]);
    else
        std::memcpy(into, from, count * sizeof(T));
}

template <typename T>
void store(std::byte* into, const Working<T>* from, std::size_t count) {
    if constexpr (is_half<T>)
        for (std::size_t i = 0; i < count; ++i) reinterpret_cast<T*>(into)[i] = T(from[i]);
    else
        std::memcpy(into, from, count * sizeof(T));
}

template <typename T>
void fold_bytes(ReduceOp op, Working<T>* into, const std::byte* from, std::size_t count) {
    if constexpr (is_half<T>) {
        alignas(64) std::array<float, block_bytes / sizeof(float)> wide;
        load<T>(wide.data(), from, count);
        fold(op, into, wide.data(), count);
    } else {
        fold(op, into, reinterpret_cast<const T*>(from), count);
    }
}

template <typename T>
void combine_typed(ReduceOp op, std::span<const std::byte* const> sources,
                   std::span<std::byte* const> sinks, std::size_t count) {
    constexpr std::size_t per_block = block_bytes / sizeof(Working<T>);
    alignas(64) std::array<Working<T>, per_block> block;
    for (std::size_t first = 0; first < count; first += per_block) {
        const std::size_t here = std::min(per_block, count - first);
        const std::size_t at = first * sizeof(T);
        load<T>(block.data(), sources.front() + at, here);
        for (const std::byte* source : sources.subspan(1))
            fold_bytes<T>(op, block.data(), source + at, here);
        if (op == ReduceOp::avg) divide(block.data(), here, sources.size());
        if constexpr (is_half<T>) {
            alignas(64) std::array<T, per_block> narrow;
            store<T>(reinterpret_cast<std::byte*>(narrow.data()), block.data(), here);
            for (std::byte* sink : sinks) std::memcpy(sink + at, narrow.data(), here * sizeof(T));
        } else {
            for (std::byte* sink : sinks) std::memcpy(sink + at, block.data(), here * sizeof(T));
        }
    }
}

template <typename T>
void fold_in_typed(ReduceOp op, std::byte* into, const std::byte* from, std::size_t count) {
    if constexpr (is_half<T>) {
        const std::array<const std::byte*, 2> sources = {into, from};
        // A sum of two, rounded: an average is divided at its end.
        combine_typed<T>(op == ReduceOp::avg ? ReduceOp::sum : op, sources, {&into, 1}, count);
    } else {
        fold(op, reinterpret_cast<T*>(into), reinterpret_cast<const T*>(from), count);
    }
}

template <typename T>
void divide_typed(std::byte* values, std::size_t count, std::size_t by) {
    if constexpr (is_half<T>)
        for (std::size_t i = 0; i < count; ++i) {
            T& value = reinterpret_cast<T*>(values)[i];
            value = T(static_cast<float>(value) / static_cast<float>(by));
        }
    else
        divide(reinterpret_cast<T*>(values), count, by);
}

// Calls `work` with a value of the element's type.
template <typename Work>
void with_type(ElementType type, Work work) {
    switch (type) {
        case ElementType::float32:
            return work(float());
        case ElementType::float64:
            return work(double());
        case ElementType::int32:
            return work(std::int32_t());
        case ElementType::int64:
            return work(std::int64_t());
        case ElementType::uint8:
            return work(std::uint8_t());
        case ElementType::float16:
            return work(Float16());
        case ElementType::bfloat16:
            return work(BFloat16());
    }
}

}  // namespace

void combine(ElementType type, ReduceOp op, std::span<const std::byte* const> sources,
             std::span<std::byte* const> sinks, std::size_t count) {
    with_type(type, [&]<typename T>(T) { combine_typed<T>(op, sources, sinks, count); });
}

void fold_in(ElementType type, ReduceOp op, std::byte* into, const std::byte* from,
             std::size_t count) {
    with_type(type, [&]<typename T>(T) { fold_in_typed<T>(op, into, from, count); });
}

void divide_by(ElementType type, std::byte* values, std::size_t count, std::size_t ranks) {
    with_type(type, [&]<typename T>(T) { divide_typed<T>(values, count, ranks); });
}

}  // namespace ddrun::detail
