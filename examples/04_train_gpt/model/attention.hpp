#pragma once

#include "examples/04_train_gpt/model/config.hpp"

namespace train_gpt {

struct AttentionSize {
    BatchShape shape;
    int heads;
    int width;

    int head_width() const { return width / heads; }
};

// Causal self-attention: a token sees itself and what came before it in its sample.
// qkv: [rows, 3 * width], query, key and value side by side, heads side by side within each.
// weights: [batch, heads, length, length], kept for backward. output: [rows, width].
template <typename Real>
void attention_forward(const AttentionSize& size, const Real* qkv, Real* weights, Real* output);

// Overwrites qkv_gradient. `scratch` holds length * length numbers.
template <typename Real>
void attention_backward(const AttentionSize& size, const Real* qkv, const Real* weights,
                        const Real* output_gradient, Real* scratch, Real* qkv_gradient);

}  // namespace train_gpt
