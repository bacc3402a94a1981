#include "examples/04_train_gpt/model/layers.hpp"

#include "examples/04_train_gpt/model/matrix.hpp"
#include "examples/04_train_gpt/model/vector_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace train_gpt {
namespace {

constexpr auto norm_epsilon = 1e-5;

template <typename Real>
const Real* row_of(const Real* matrix, int row, int width) {
    return matrix + static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
}

template <typename Real>
Real* row_of(Real* matrix, int row, int width) {
    return matrix + static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
}

template <typename Real>
void add_to(int count, const Real* values, Real* sum) {
    for (int index = 0; index < count; ++index) sum[index] += values[index];
}

template <typename Real>
void multiply_by_weight(LinearSize size, const Real* input, const Real* weight, Real* output) {
    multiply({size.rows, size.outputs, size.inputs}, Real{1}, Matrix<Real>{input, size.inputs},
             transpose(Matrix<Real>{weight, size.inputs}), Real{1}, output, size.outputs);
}

// GELU(x) = x * sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3), since tanh(u) = 2 sigmoid(2u)
// - 1.
constexpr auto gelu_slope = 1.5957691216057308;  // 2 sqrt(2 / pi)
constexpr auto gelu_cubic = 0.044715;

// sigmoid(2u)
template <typename Real>
Real gelu_gate(Real x) {
    const Real twice_u = Real(gelu_slope) * x * (Real{1} + Real(gelu_cubic) * x * x);
    const Real decay = decaying_exponential(-std::abs(twice_u));
    const Real share = Real{1} / (Real{1} + decay);
    return twice_u >= Real{0} ? share : decay * share;
}

template <typename Real>
Real gelu_derivative(Real x) {
    const Real gate = gelu_gate(x);
    const Real slope = Real(gelu_slope) * (Real{1} + Real(3 * gelu_cubic) * x * x);
    return gate + x * gate * (Real{1} - gate) * slope;
}

}  // namespace

template <typename Real>
void linear_forward(LinearSize size, const Real* input, const Real* weight, const Real* bias,
                    Real* output) {
    for (int row = 0; row < size.rows; ++row) {
        std::copy_n(bias, size.outputs, row_of(output, row, size.outputs));
    }
    multiply_by_weight(size, input, weight, output);
}

template <typename Real>
void linear_forward_onto(LinearSize size, const Real* base, const Real* input, const Real* weight,
                         const Real* bias, Real* output) {
    for (int row = 0; row < size.rows; ++row) {
        const Real* from = row_of(base, row, size.outputs);
        Real* to = row_of(output, row, size.outputs);
        for (int column = 0; column < size.outputs; ++column)
            to[column] = from[column] + bias[column];
    }
    multiply_by_weight(size, input, weight, output);
}

template <typename Real>
void linear_backward(LinearSize size, const Real* input, const Real* weight,
                     const Real* output_gradient, Real* input_gradient, Real* weight_gradient,
                     Real* bias_gradient) {
    const Matrix<Real> gradient{output_gradient, size.outputs};
    multiply({size.rows, size.inputs, size.outputs}, Real{1}, gradient,
             Matrix<Real>{weight, size.inputs}, Real{0}, input_gradient, size.inputs);
    multiply({size.outputs, size.inputs, size.rows}, Real{1}, transpose(gradient),
             Matrix<Real>{input, size.inputs}, Real{1}, weight_gradient, size.inputs);
    for (int row = 0; row < size.rows; ++row) {
        add_to(size.outputs, row_of(output_gradient, row, size.outputs), bias_gradient);
    }
}

template <typename Real>
void norm_forward(int rows, int width, const Real* input, const Real* gain, const Real* shift,
                  Real* normalised, Real* inverse_deviation, Real* output) {
    const Real inverse_width = Real{1} / static_cast<Real>(width);
    for (int row = 0; row < rows; ++row) {
        const Real* x = row_of(input, row, width);
        Real* unit = row_of(normalised, row, width);
        Real* y = row_of(output, row, width);
        const Real mean = inverse_width * lane_sum<Real>(width, [=](int i) { return x[i]; });
        const Real variance = inverse_width * lane_sum<Real>(width, [=](int i) {
                                  return (x[i] - mean) * (x[i] - mean);
                              });
        const Real inverse = Real{1} / std::sqrt(variance + Real(norm_epsilon));
        inverse_deviation[row] = inverse;
        for (int i = 0; i < width; ++i) {
            unit[i] = (x[i] - mean) * inverse;
            y[i] = unit[i] * gain[i] + shift[i];
        }
    }
}

template <typename Real>
void norm_backward(int rows, int width, const Real* normalised, const Real* inverse_deviation,
                   const Real* gain, const Real* output_gradient, Real* input_gradient,
                   Real* gain_gradient, Real* shift_gradient) {
    const Real inverse_width = Real{1} / static_cast<Real>(width);
    for (int row = 0; row < rows; ++row) {
        const Real* unit = row_of(normalised, row, width);
        const Real* dy = row_of(output_gradient, row, width);
        Real* dx = row_of(input_gradient, row, width);
        // The norm removes the gradient's mean and its part along the normalised row.
        const Real mean =
            inverse_width * lane_sum<Real>(width, [=](int i) { return dy[i] * gain[i]; });
        const Real along =
            inverse_width * lane_sum<Real>(width, [=](int i) { return dy[i] * gain[i] * unit[i]; });
        const Real inverse = inverse_deviation[row];
        for (int i = 0; i < width; ++i) {
            dx[i] += inverse * (dy[i] * gain[i] - mean - unit[i] * along);
            gain_gradient[i] += dy[i] * unit[i];
            shift_gradient[i] += dy[i];
        }
    }
}

template <typename Real>
void gelu_forward(int count, const Real* input, Real* output) {
    for (int index = 0; index < count; ++index) {
        output[index] = input[index] * gelu_gate(input[index]);
    }
}

template <typename Real>
void gelu_backward(int count, const Real* input, Real* gradient) {
    for (int index = 0; index < count; ++index) gradient[index] *= gelu_derivative(input[index]);
}

template <typename Real>
void embedding_forward(std::span<const Token> tokens, int length, int width,
                       const Real* token_table, const Real* position_table, Real* output) {
    for (int row = 0; row < static_cast<int>(tokens.size()); ++row) {
        const Real* token = row_of(token_table, tokens[row], width);
        const Real* position = row_of(position_table, row % length, width);
        Real* sum = row_of(output, row, width);
        for (int i = 0; i < width; ++i) sum[i] = token[i] + position[i];
    }
}

template <typename Real>
void embedding_backward(std::span<const Token> tokens, int length, int width,
                        const Real* output_gradient, Real* token_gradient,
                        Real* position_gradient) {
    for (int row = 0; row < static_cast<int>(tokens.size()); ++row) {
        const Real* gradient = row_of(output_gradient, row, width);
        add_to(width, gradient, row_of(token_gradient, tokens[row], width));
        add_to(width, gradient, row_of(position_gradient, row % length, width));
    }
}

template void linear_forward(LinearSize, const float*, const float*, const float*, float*);
template void linear_forward_onto(LinearSize, const float*, const float*, const float*,
                                  const float*, float*);
template void linear_backward(LinearSize, const float*, const float*, const float*, float*, float*,
                              float*);
template void norm_forward(int, int, const float*, const float*, const float*, float*, float*,
                           float*);
template void norm_backward(int, int, const float*, const float*, const float*, const float*,
                            float*, float*, float*);
template void gelu_forward(int, const float*, float*);
template void gelu_backward(int, const float*, float*);
template void embedding_forward(std::span<const Token>, int, int, const float*, const float*,
                                float*);
template void embedding_backward(std::span<const Token>, int, int, const float*, float*, float*);

template void linear_forward(LinearSize, const double*, const double*, const double*, double*);
template void linear_forward_onto(LinearSize, const double*, const double*, const double*,
                                  const double*, double*);
template void linear_backward(LinearSize, const double*, const double*, const double*, double*,
                              double*, double*);
template void norm_forward(int, int, const double*, const double*, const double*, double*, double*,
                           double*);
template void norm_backward(int, int, const double*, const double*, const double*, const double*,
                            double*, double*, double*);
template void gelu_forward(int, const double*, double*);
template void gelu_backward(int, const double*, double*);
template void embedding_forward(std::span<const Token>, int, int, const double*, const double*,
                                double*);
template void embedding_backward(std::span<const Token>, int, int, const double*, double*, double*);

}  // namespace train_gpt
