#pragma once

#include "examples/04_train_gpt/model/aligned_vector.hpp"
#include "examples/04_train_gpt/model/parameters.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace train_gpt {

struct AdamSettings {
    double first_decay = 0.9;
    double second_decay = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.1;  // only of tensors that say so
};

// Running means of the gradient and of its square, one number per parameter.
template <typename Real>
struct AdamMoments {
    AlignedVector<Real> first;
    AlignedVector<Real> second;
};

// Applies step number `step` (from 0) with gradients multiplied by gradient_scale.
template <typename Real>
void apply_adamw(const AdamSettings& settings, const std::vector<Tensor>& tensors,
                 std::uint64_t step, double learning_rate, Real gradient_scale,
                 std::span<const Real> gradients, AdamMoments<Real>& moments,
                 std::span<Real> parameters);

// Euclidean length of all gradients together.
template <typename Real>
double gradient_norm(std::span<const Real> gradients);

}  // namespace train_gpt
