#include "examples/04_train_gpt/model/vector_math.hpp"
#include "examples/04_train_gpt/model/layers.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <vector>

using namespace train_gpt;

TEST_CASE("the float exponential is right to two parts in ten million") {
    double worst = 0.0;
    for (int i = 0; i <= 870'000; ++i) {
        const float x = -static_cast<float>(i) * 1e-4f;
        const double expected = std::exp(static_cast<double>(x));
        worst = std::max(worst, std::abs(decaying_exponential(x) - expected) / expected);
    }
    CHECK(worst < 2e-7);
}

TEST_CASE("the float exponential is 1 at 0 and stays finite far below") {
    CHECK(decaying_exponential(0.0f) == 1.0f);
    CHECK(decaying_exponential(-1e30f) >= 0.0f);
    CHECK(decaying_exponential(-1e30f) < 1e-37f);
}

TEST_CASE("lane reductions take in every element, whatever the count") {
    for (int count = 1; count <= 3 * vector_lanes + 1; ++count) {
        CAPTURE(count);
        std::vector<float> values;
        for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 7 - 5));
        values.back() = 9.0f;
        float sum = 0.0f;
        for (const float value : values) sum += value;
        CHECK(lane_sum<float>(count, [&](int i) { return values[i]; }) == sum);
        CHECK(lane_maximum(count, values.data()) == 9.0f);
    }
}

TEST_CASE("GELU is its formula with tanh") {
    for (const double x : {-30.0, -3.0, -0.5, 0.0, 0.25, 2.0, 30.0}) {
        CAPTURE(x);
        const double inner = std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
        const double expected = 0.5 * x * (1.0 + std::tanh(inner));
        double exact = 0.0;
        gelu_forward(1, &x, &exact);
        CHECK(exact == Approx(expected).margin(1e-14));
        const auto single = static_cast<float>(x);
        float result = 0.0f;
        gelu_forward(1, &single, &result);
        CHECK(result == Approx(expected).margin(1e-6));
    }
}
