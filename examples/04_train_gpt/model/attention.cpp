#include "examples/04_train_gpt/model/attention.hpp"

#include "examples/04_train_gpt/model/matrix.hpp"
#include "examples/04_train_gpt/model/vector_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace train_gpt {
namespace {

// Where one head of one sample begins in each of the arrays.
struct HeadPlace {
    std::size_t query;
    std::size_t key;
    std::size_t value;
    std::size_t weights;
    std::size_t output;
};

HeadPlace place_of(const AttentionSize& size, int sample, int head) {
    const auto width = static_cast<std::size_t>(size.width);
    const auto length = static_cast<std::size_t>(size.shape.length);
    const std::size_t row = static_cast<std::size_t>(sample) * length;
    const std::size_t column = static_cast<std::size_t>(head * size.head_width());
    const std::size_t query = row * 3 * width + column;
    const std::size_t matrix = static_cast<std::size_t>(sample * size.heads + head);
    return {query, query + width, query + 2 * width, matrix * length * length,
            row * width + column};
}

template <typename Visit>
void for_each_head(const AttentionSize& size, Visit visit) {
    for (int sample = 0; sample < size.shape.batch; ++sample) {
        for (int head = 0; head < size.heads; ++head) visit(place_of(size, sample, head));
    }
}

// Row `row` of the scores becomes weights over columns 0..row; later columns are the future.
template <typename Real>
void causal_softmax(int length, Real* scores) {
    for (int row = 0; row < length; ++row) {
        Real* weights = scores + static_cast<std::size_t>(row) * static_cast<std::size_t>(length);
        const int seen = row + 1;
        const Real top = lane_maximum(seen, weights);
        for (int i = 0; i < seen; ++i) weights[i] = decaying_exponential(weights[i] - top);
        const Real scale = Real{1} / lane_sum<Real>(seen, [=](int i) { return weights[i]; });
        for (int i = 0; i < seen; ++i) weights[i] *= scale;
        std::fill(weights + seen, weights + length, Real{0});
    }
}

// gradient: of the weights on entry, of the scores on return.
template <typename Real>
void softmax_backward(int length, const Real* weights, Real* gradient) {
    for (int row = 0; row < length; ++row, weights += length, gradient += length) {
        const Real mean = lane_sum<Real>(row + 1, [=](int i) { return weights[i] * gradient[i]; });
        for (int i = 0; i < length; ++i) gradient[i] = weights[i] * (gradient[i] - mean);
    }
}

template <typename Real>
Real score_scale(const AttentionSize& size) {
    return Real{1} / std::sqrt(static_cast<Real>(size.head_width()));
}

}  // namespace

template <typename Real>
void attention_forward(const AttentionSize& size, const Real* qkv, Real* weights, Real* output) {
    const int length = size.shape.length;
    const int head_width = size.head_width();
    const int stride = 3 * size.width;
    for_each_head(size, [&](const HeadPlace& at) {
        Real* head_weights = weights + at.weights;
        multiply({length, length, head_width}, score_scale<Real>(size),
                 Matrix<Real>{qkv + at.query, stride},
                 transpose(Matrix<Real>{qkv + at.key, stride}), Real{0}, head_weights, length);
        causal_softmax(length, head_weights);
        multiply({length, head_width, length}, Real{1}, Matrix<Real>{head_weights, length},
                 Matrix<Real>{qkv + at.value, stride}, Real{0}, output + at.output, size.width);
    });
}

template <typename Real>
void attention_backward(const AttentionSize& size, const Real* qkv, const Real* weights,
                        const Real* output_gradient, Real* scratch, Real* qkv_gradient) {
    const int length = size.shape.length;
    const int head_width = size.head_width();
    const int stride = 3 * size.width;
    const ProductSize to_head{length, head_width, length};
    const Real scale = score_scale<Real>(size);
    for_each_head(size, [&](const HeadPlace& at) {
        const Matrix<Real> head_weights{weights + at.weights, length};
        const Matrix<Real> head_gradient{output_gradient + at.output, size.width};
        const Matrix<Real> score_gradient{scratch, length};
        multiply({length, length, head_width}, Real{1}, head_gradient,
                 transpose(Matrix<Real>{qkv + at.value, stride}), Real{0}, scratch, length);
        softmax_backward(length, head_weights.data, scratch);
        multiply(to_head, Real{1}, transpose(head_weights), head_gradient, Real{0},
                 qkv_gradient + at.value, stride);
        multiply(to_head, scale, score_gradient, Matrix<Real>{qkv + at.key, stride}, Real{0},
                 qkv_gradient + at.query, stride);
        multiply(to_head, scale, transpose(score_gradient), Matrix<Real>{qkv + at.query, stride},
                 Real{0}, qkv_gradient + at.key, stride);
    });
}

template void attention_forward(const AttentionSize&, const float*, float*, float*);
template void attention_backward(const AttentionSize&, const float*, const float*, const float*,
                                 float*, float*);
template void attention_forward(const AttentionSize&, const double*, double*, double*);
template void attention_backward(const AttentionSize&, const double*, const double*, const double*,
                                 double*, double*);

}  // namespace train_gpt
