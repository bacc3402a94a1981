#include <ddrun/half.hpp>

#include "tests/support/catch.hpp"

#include <cmath>
#include <limits>

using namespace ddrun;

namespace {

// From the definition: sign, five bits of exponent, ten of fraction.
double binary16(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

bool is_finite16(std::uint16_t bits) {
    return (bits & 0x7c00) != 0x7c00;
}

}  // namespace

TEST_CASE("every sixteen-bit number means what its bits say, and survives the way through float") {
    for (unsigned bits = 0; bits < 65536; ++bits) {
        Float16 half;
        half.bits = static_cast<std::uint16_t>(bits);
        const float value = static_cast<float>(half);
        if (is_finite16(half.bits)) REQUIRE(static_cast<double>(value) == binary16(half.bits));
        if (!std::isnan(value)) REQUIRE(Float16(value).bits == half.bits);
        BFloat16 brain;
        brain.bits = static_cast<std::uint16_t>(bits);
        if (!std::isnan(static_cast<float>(brain)))
            REQUIRE(BFloat16(static_cast<float>(brain)).bits == brain.bits);
    }
}

TEST_CASE("floats go to the nearest sixteen-bit number, ties to the even one") {
    for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {  // and the next one
        const auto low = static_cast<float>(binary16(bits));
        const auto high = static_cast<float>(binary16(static_cast<std::uint16_t>(bits + 1)));
        const float middle = low + (high - low) / 2;
        const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
        REQUIRE(Float16(middle).bits == even);
        REQUIRE(Float16(std::nextafter(middle, 0.0f)).bits == bits);
        REQUIRE(Float16(std::nextafter(middle, 1e6f)).bits == bits + 1);
    }
    CHECK(BFloat16(1.00390625f).bits == 0x3f80);  // half way up: the even one below
    CHECK(BFloat16(1.01171875f).bits == 0x3f82);  // half way up: the even one above
    CHECK(BFloat16(1.00390637f).bits == 0x3f81);
}

TEST_CASE("what is too large is infinite, and no number stays none") {
    const float infinity = std::numeric_limits<float>::infinity();
    CHECK(std::isinf(static_cast<float>(Float16(65520.0f))));
    CHECK(static_cast<float>(Float16(65519.0f)) == 65504.0f);
    CHECK(std::isinf(static_cast<float>(Float16(-infinity))));
    CHECK(std::isinf(static_cast<float>(BFloat16(infinity))));
    CHECK(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
    CHECK(std::isnan(static_cast<float>(Float16(std::nanf("")))));
    CHECK(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
    CHECK(Float16(1e-9f).bits == 0);
    CHECK(Float16(-1e-9f).bits == 0x8000);
}
