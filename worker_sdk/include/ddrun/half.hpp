#pragma once

#include <bit>
#include <cstdint>

namespace ddrun {

// Sixteen-bit floating point numbers as they lie in memory and on the wire: plain bits that convert
// to float exactly and from float to the nearest, ties to even. Layout-compatible with __half and
// __nv_bfloat16.

// IEEE binary16: 11 bits of precision, up to 65504.
struct Float16 {
    std::uint16_t bits = 0;

    Float16() = default;
    explicit Float16(float value) : bits(from(value)) {}
    explicit operator float() const;
    bool operator==(const Float16&) const = default;

  private:
    static std::uint16_t from(float value);
};

// The upper half of a float: its range, with 8 bits of precision.
struct BFloat16 {
    std::uint16_t bits = 0;

    BFloat16() = default;
    explicit BFloat16(float value) {
        const auto whole = std::bit_cast<std::uint32_t>(value);
        const bool is_nan = (whole & 0x7fff'ffffu) > 0x7f80'0000u;
        const std::uint32_t rounded = whole + 0x7fffu + ((whole >> 16) & 1u);
        bits = static_cast<std::uint16_t>((is_nan ? whole | 0x40'0000u : rounded) >> 16);
    }
    explicit operator float() const {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    }
    bool operator==(const BFloat16&) const = default;
};

inline Float16::operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)  // infinity, NaN
        return std::bit_cast<float>(sign | 0x7f80'0000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x0400u)  // normal: another bias of the exponent
        return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
    const float tiny = static_cast<float>(magnitude) * 0x1p-24f;  // subnormal, exact
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
}

inline std::uint16_t Float16::from(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(whole >> 16 & 0x8000u);
    const std::uint32_t magnitude = whole & 0x7fff'ffffu;
    if (magnitude > 0x7f80'0000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x4780'0000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65536
    if (magnitude < 0x3880'0000u) {  // below the smallest normal: multiples of 2^-24
        // Adding 0.5 leaves them, rounded to even, in the last bits of a float's fraction.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(
            sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
    return static_cast<std::uint16_t>(sign | rounded >> 13);
}

}  // namespace ddrun
