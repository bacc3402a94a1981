#pragma once

#include <cstdint>
#include <span>

namespace train_gpt {

// The parts of the network that treat every row (token) alike. Matrices are [rows, width], row by
// row, without gaps. Every backward function *adds* to parameter gradients; what it does with the
// gradient of its input stands at the function.

// Indices into the vocabulary, at most 256 of them.
using Token = std::uint8_t;

struct LinearSize {
    int rows;
    int inputs;
    int outputs;
};

// output = input * weight^T + bias
template <typename Real>
void linear_forward(LinearSize size, const Real* input, const Real* weight, const Real* bias,
                    Real* output);

// output = base + input * weight^T + bias, for the residual stream. `base` may be `output`.
template <typename Real>
void linear_forward_onto(LinearSize size, const Real* base, const Real* input, const Real* weight,
                         const Real* bias, Real* output);

// Overwrites input_gradient.
template <typename Real>
void linear_backward(LinearSize size, const Real* input, const Real* weight,
                     const Real* output_gradient, Real* input_gradient, Real* weight_gradient,
                     Real* bias_gradient);

// output = normalised(input) * gain + shift. Keeps what backward needs: the normalised rows and
// 1 / deviation of each row.
template <typename Real>
void norm_forward(int rows, int width, const Real* input, const Real* gain, const Real* shift,
                  Real* normalised, Real* inverse_deviation, Real* output);

// Adds to input_gradient: the residual stream carries a gradient of its own past the norm.
template <typename Real>
void norm_backward(int rows, int width, const Real* normalised, const Real* inverse_deviation,
                   const Real* gain, const Real* output_gradient, Real* input_gradient,
                   Real* gain_gradient, Real* shift_gradient);

// The tanh form of GELU.
template <typename Real>
void gelu_forward(int count, const Real* input, Real* output);

// Turns the gradient of the output into that of the input, in place.
template <typename Real>
void gelu_backward(int count, const Real* input, Real* gradient);

// output[row] = token_table[token] + position_table[row % length]
template <typename Real>
void embedding_forward(std::span<const Token> tokens, int length, int width,
                       const Real* token_table, const Real* position_table, Real* output);

template <typename Real>
void embedding_backward(std::span<const Token> tokens, int length, int width,
                        const Real* output_gradient, Real* token_gradient, Real* position_gradient);

}  // namespace train_gpt
