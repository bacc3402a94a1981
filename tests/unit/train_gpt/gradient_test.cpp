#include "examples/04_train_gpt/model/gpt.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace train_gpt;

namespace {

// Odd sizes, so that no dimension can stand in for another.
const ModelConfig config{.vocabulary = 11, .context = 5, .layers = 2, .heads = 3, .width = 9};

std::vector<Token> make_tokens(BatchShape shape, int factor) {
    std::vector<Token> tokens;
    for (int i = 0; i < shape.rows(); ++i) {
        tokens.push_back(static_cast<Token>((factor * i + i * i) % config.vocabulary));
    }
    return tokens;
}

AlignedVector<double> make_parameters() {
    AlignedVector<double> parameters(count_parameters(config));
    initialise_parameters(config, 7, std::span<double>(parameters));
    // Away from the start values, whose zeros and ones would hide mistakes.
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        parameters[i] += 0.3 * std::sin(1.3 * static_cast<double>(i));
    }
    return parameters;
}

void check_all_derivatives(BatchShape shape) {
    const auto tokens = make_tokens(shape, 3);
    const auto targets = make_tokens(shape, 5);
    auto parameters = make_parameters();
    AlignedVector<double> gradients(parameters.size());
    Gpt<double> model(config, shape.batch);
    const auto loss = [&] {
        model.forward(parameters, tokens, shape);
        return model.loss(targets);
    };
    loss();
    model.backward(parameters, targets, 1.0, gradients);
    constexpr auto distance = 1e-4;
    double worst = 0.0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double middle = parameters[i];
        // Four points: the error falls with the fourth power of the distance.
        const auto loss_at = [&](double offset) {
            parameters[i] = middle + offset;
            return loss();
        };
        const double near = loss_at(distance) - loss_at(-distance);
        const double far = loss_at(2 * distance) - loss_at(-2 * distance);
        parameters[i] = middle;
        const double expected = (8.0 * near - far) / (12.0 * distance);
        worst =
            std::max(worst, std::abs(gradients[i] - expected) / std::max(1.0, std::abs(expected)));
    }
    CAPTURE(shape.batch, shape.length);
    CHECK(worst < 1e-9);
}

}  // namespace

TEST_CASE("the derivative of every parameter is that of finite differences") {
    check_all_derivatives({3, 5});
    check_all_derivatives({1, 4});  // shorter than the context
}

TEST_CASE("backward adds to the gradients and scales what it adds") {
    const BatchShape shape{2, 5};
    const auto tokens = make_tokens(shape, 3);
    const auto targets = make_tokens(shape, 5);
    const auto parameters = make_parameters();
    Gpt<double> model(config, shape.batch);
    AlignedVector<double> once(parameters.size());
    AlignedVector<double> twice(parameters.size(), 1.0);
    model.forward(parameters, tokens, shape);
    model.backward(parameters, targets, 1.0, once);
    model.forward(parameters, tokens, shape);
    model.backward(parameters, targets, 2.0, twice);
    double worst = 0.0;
    for (std::size_t i = 0; i < once.size(); ++i) {
        worst = std::max(worst, std::abs(twice[i] - 1.0 - 2.0 * once[i]));
    }
    CHECK(worst < 1e-12);
}

TEST_CASE("the parts of a batch add up to the gradient of the whole, as ranks do") {
    const BatchShape whole{4, 5};
    const auto tokens = make_tokens(whole, 3);
    const auto targets = make_tokens(whole, 5);
    const auto parameters = make_parameters();
    Gpt<double> model(config, whole.batch);
    AlignedVector<double> together(parameters.size());
    AlignedVector<double> parts(parameters.size());
    model.forward(parameters, tokens, whole);
    model.backward(parameters, targets, 1.0, together);
    const BatchShape part{1, 5};
    for (std::size_t sample = 0; sample < 4; ++sample) {
        const auto window = [&](const std::vector<Token>& all) {
            return std::span<const Token>(all).subspan(sample * 5, 5);
        };
        model.forward(parameters, window(tokens), part);
        model.backward(parameters, window(targets), 1.0, parts);
    }
    double worst = 0.0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        worst = std::max(worst, std::abs(parts[i] - together[i]));
    }
    CHECK(worst < 1e-12);
}

TEST_CASE("no token sees a later one") {
    const BatchShape shape{1, 5};
    auto tokens = make_tokens(shape, 3);
    const auto parameters = make_parameters();
    Gpt<double> model(config, 1);
    model.forward(parameters, tokens, shape);
    const auto seen = model.logits().first(4 * 11);
    const std::vector<double> before(seen.begin(), seen.end());
    tokens.back() = static_cast<Token>((tokens.back() + 1) % config.vocabulary);
    model.forward(parameters, tokens, shape);
    const auto again = model.logits().first(4 * 11);
    CHECK(std::equal(before.begin(), before.end(), again.begin()));
}
