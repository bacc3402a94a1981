#pragma once

#include "examples/04_train_gpt/model/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace train_gpt {

// All parameters lie in one arena, and the gradients in a second one of the same layout, so that
// one all-reduce and one optimizer pass serve the whole model.

// How a tensor looks before the first step.
enum class Start {
    zeros,
    ones,
    normal,    // deviation 0.02
    residual,  // normal, scaled down by the number of additions to the residual stream
};

struct Tensor {
    std::string name;
    std::size_t offset = 0;  // in the arena
    std::size_t size = 0;
    Start start = Start::zeros;
    bool decays = false;  // takes part in weight decay (matrices do, gains and shifts do not)
};

// The tensors in arena order, without gaps.
std::vector<Tensor> list_tensors(const ModelConfig& config);

std::size_t count_parameters(const ModelConfig& config);

// One transformer block. Matrices are stored [outputs, inputs], row by row.
template <typename Real>
struct BlockView {
    Real* norm1_gain;
    Real* norm1_shift;
    Real* attention_weight;  // [3 * width, width]: query, key, value
    Real* attention_bias;
    Real* output_weight;  // [width, width]
    Real* output_bias;
    Real* norm2_gain;
    Real* norm2_shift;
    Real* expand_weight;  // [4 * width, width]
    Real* expand_bias;
    Real* contract_weight;  // [width, 4 * width]
    Real* contract_bias;
};

// Names for the places in an arena. The token embedding is also the output matrix ("tied head").
template <typename Real>
struct ParameterView {
    Real* token_embedding;     // [vocabulary, width]
    Real* position_embedding;  // [context, width]
    std::vector<BlockView<Real>> blocks;
    Real* final_gain;
    Real* final_shift;
};

// Real: float, double, const float or const double.
template <typename Real>
ParameterView<Real> view_parameters(const ModelConfig& config, std::span<Real> arena);

// Fills the arena with its start values: a pure function of (config, seed).
template <typename Real>
void initialise_parameters(const ModelConfig& config, std::uint64_t seed, std::span<Real> arena);

}  // namespace train_gpt
