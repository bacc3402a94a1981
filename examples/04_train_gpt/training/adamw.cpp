#include "examples/04_train_gpt/training/adamw.hpp"

#include "examples/04_train_gpt/model/vector_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace train_gpt {

template <typename Real>
void apply_adamw(const AdamSettings& settings, const std::vector<Tensor>& tensors,
                 std::uint64_t step, double learning_rate, Real gradient_scale,
                 std::span<const Real> gradients, AdamMoments<Real>& moments,
                 std::span<Real> parameters) {
    const auto steps = static_cast<double>(step + 1);
    // Both means start at zero; these factors undo that bias.
    const auto rate =
        static_cast<Real>(learning_rate / (1.0 - std::pow(settings.first_decay, steps)));
    const auto second_correction =
        static_cast<Real>(1.0 / (1.0 - std::pow(settings.second_decay, steps)));
    const auto keep_first = static_cast<Real>(settings.first_decay);
    const auto keep_second = static_cast<Real>(settings.second_decay);
    const auto epsilon = static_cast<Real>(settings.epsilon);
    const Real* gradient = gradients.data();
    Real* first = moments.first.data();
    Real* second = moments.second.data();
    Real* parameter = parameters.data();
    for (const Tensor& tensor : tensors) {
        const auto shrink =
            static_cast<Real>(tensor.decays ? 1.0 - learning_rate * settings.weight_decay : 1.0);
        for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
            const Real g = gradient[i] * gradient_scale;
            first[i] = keep_first * first[i] + (Real{1} - keep_first) * g;
            second[i] = keep_second * second[i] + (Real{1} - keep_second) * g * g;
            const Real deviation = std::sqrt(second[i] * second_correction) + epsilon;
            parameter[i] = shrink * parameter[i] - rate * first[i] / deviation;
        }
    }
}

template <typename Real>
double gradient_norm(std::span<const Real> gradients) {
    // Chunks in double: a million squares in one float sum would lose digits.
    constexpr std::size_t chunk = 4096;
    double squares = 0.0;
    for (std::size_t begin = 0; begin < gradients.size(); begin += chunk) {
        const Real* values = gradients.data() + begin;
        const auto count = static_cast<int>(std::min(chunk, gradients.size() - begin));
        squares += lane_sum<Real>(count, [=](int i) { return values[i] * values[i]; });
    }
    return std::sqrt(squares);
}

template void apply_adamw(const AdamSettings&, const std::vector<Tensor>&, std::uint64_t, double,
                          float, std::span<const float>, AdamMoments<float>&, std::span<float>);
template void apply_adamw(const AdamSettings&, const std::vector<Tensor>&, std::uint64_t, double,
                          double, std::span<const double>, AdamMoments<double>&, std::span<double>);
template double gradient_norm(std::span<const float>);
template double gradient_norm(std::span<const double>);

}  // namespace train_gpt
