#include "examples/04_train_gpt/model/gpt.hpp"

#include "examples/04_train_gpt/model/attention.hpp"
#include "examples/04_train_gpt/model/cross_entropy.hpp"
#include "examples/04_train_gpt/model/matrix.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace train_gpt {
namespace {

template <typename Real>
AlignedVector<Real> make_array(int rows, int columns) {
    return AlignedVector<Real>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
}

}  // namespace

template <typename Real>
Gpt<Real>::Gpt(const ModelConfig& config, int max_batch) : config_(config), max_batch_(max_batch) {
    const int rows = max_batch * config.context;
    const int width = config.width;
    const auto make_norm = [&] {
        return Norm{make_array<Real>(rows, width), make_array<Real>(rows, 1),
                    make_array<Real>(rows, width)};
    };
    for (int layer = 0; layer < config.layers; ++layer) {
        blocks_.push_back({make_array<Real>(rows, 3 * width),
                           make_array<Real>(rows, config.heads * config.context),
                           make_array<Real>(rows, width), make_array<Real>(rows, width),
                           make_array<Real>(rows, 4 * width), make_array<Real>(rows, 4 * width),
                           make_array<Real>(rows, width), make_norm(), make_norm()});
    }
    embedded_ = make_array<Real>(rows, width);
    final_norm_ = make_norm();
    logits_ = make_array<Real>(rows, config.vocabulary);
    stream_gradient_ = make_array<Real>(rows, width);
    branch_gradient_ = make_array<Real>(rows, width);
    wide_gradient_ = make_array<Real>(rows, 4 * width);
    score_gradient_ = make_array<Real>(config.context, config.context);
}

template <typename Real>
void Gpt<Real>::forward(std::span<const Real> parameters, std::span<const Token> tokens,
                        BatchShape shape) {
    assert(shape.batch <= max_batch_ && shape.length <= config_.context);
    assert(tokens.size() == static_cast<std::size_t>(shape.rows()));
    const auto view = view_parameters(config_, parameters);
    shape_ = shape;
    tokens_.assign(tokens.begin(), tokens.end());
    embedding_forward(tokens, shape.length, config_.width, view.token_embedding,
                      view.position_embedding, embedded_.data());
    const Real* stream = embedded_.data();
    for (int layer = 0; layer < config_.layers; ++layer) {
        forward_block(view.blocks[layer], stream, blocks_[layer]);
        stream = blocks_[layer].output.data();
    }
    forward_norm(stream, view.final_gain, view.final_shift, final_norm_);
    multiply({shape.rows(), config_.vocabulary, config_.width}, Real{1},
             Matrix<Real>{final_norm_.output.data(), config_.width},
             transpose(Matrix<Real>{view.token_embedding, config_.width}), Real{0}, logits_.data(),
             config_.vocabulary);
}

template <typename Real>
std::span<const Real> Gpt<Real>::logits() const {
    return std::span(logits_).first(static_cast<std::size_t>(shape_.rows()) *
                                    static_cast<std::size_t>(config_.vocabulary));
}

template <typename Real>
double Gpt<Real>::loss(std::span<const Token> targets) const {
    return cross_entropy(targets, config_.vocabulary, logits_.data());
}

template <typename Real>
void Gpt<Real>::backward(std::span<const Real> parameters, std::span<const Token> targets,
                         Real scale, std::span<Real> gradients) {
    const auto view = view_parameters(config_, parameters);
    const auto gradient = view_parameters(config_, gradients);
    cross_entropy_backward(targets, config_.vocabulary, scale, logits_.data());
    const Matrix<Real> logit_gradient{logits_.data(), config_.vocabulary};
    multiply({shape_.rows(), config_.width, config_.vocabulary}, Real{1}, logit_gradient,
             Matrix<Real>{view.token_embedding, config_.width}, Real{0}, branch_gradient_.data(),
             config_.width);
    multiply({config_.vocabulary, config_.width, shape_.rows()}, Real{1}, transpose(logit_gradient),
             Matrix<Real>{final_norm_.output.data(), config_.width}, Real{1},
             gradient.token_embedding, config_.width);
    std::fill(stream_gradient_.begin(), stream_gradient_.end(), Real{0});
    backward_norm(final_norm_, view.final_gain, gradient.final_gain, gradient.final_shift);
    for (int layer = config_.layers; layer-- > 0;) {
        backward_block(view.blocks[layer], blocks_[layer], gradient.blocks[layer]);
    }
    embedding_backward(std::span<const Token>(tokens_), shape_.length, config_.width,
                       stream_gradient_.data(), gradient.token_embedding,
                       gradient.position_embedding);
}

template <typename Real>
void Gpt<Real>::forward_block(const BlockView<const Real>& parameters, const Real* input,
                              Block& block) {
    const int width = config_.width;
    forward_norm(input, parameters.norm1_gain, parameters.norm1_shift, block.norm1);
    linear_forward(linear(width, 3 * width), block.norm1.output.data(), parameters.attention_weight,
                   parameters.attention_bias, block.qkv.data());
    attention_forward({shape_, config_.heads, width}, block.qkv.data(), block.weights.data(),
                      block.attended.data());
    linear_forward_onto(linear(width, width), input, block.attended.data(),
                        parameters.output_weight, parameters.output_bias, block.middle.data());
    forward_norm(block.middle.data(), parameters.norm2_gain, parameters.norm2_shift, block.norm2);
    linear_forward(linear(width, 4 * width), block.norm2.output.data(), parameters.expand_weight,
                   parameters.expand_bias, block.expanded.data());
    gelu_forward(shape_.rows() * 4 * width, block.expanded.data(), block.activated.data());
    linear_forward_onto(linear(4 * width, width), block.middle.data(), block.activated.data(),
                        parameters.contract_weight, parameters.contract_bias, block.output.data());
}

// On entry and return stream_gradient_ is the gradient of the block's output and input.
template <typename Real>
void Gpt<Real>::backward_block(const BlockView<const Real>& parameters, const Block& block,
                               const BlockView<Real>& gradients) {
    const int width = config_.width;
    linear_backward(linear(4 * width, width), block.activated.data(), parameters.contract_weight,
                    stream_gradient_.data(), wide_gradient_.data(), gradients.contract_weight,
                    gradients.contract_bias);
    gelu_backward(shape_.rows() * 4 * width, block.expanded.data(), wide_gradient_.data());
    linear_backward(linear(width, 4 * width), block.norm2.output.data(), parameters.expand_weight,
                    wide_gradient_.data(), branch_gradient_.data(), gradients.expand_weight,
                    gradients.expand_bias);
    backward_norm(block.norm2, parameters.norm2_gain, gradients.norm2_gain, gradients.norm2_shift);
    linear_backward(linear(width, width), block.attended.data(), parameters.output_weight,
                    stream_gradient_.data(), branch_gradient_.data(), gradients.output_weight,
                    gradients.output_bias);
    attention_backward({shape_, config_.heads, width}, block.qkv.data(), block.weights.data(),
                       branch_gradient_.data(), score_gradient_.data(), wide_gradient_.data());
    linear_backward(linear(width, 3 * width), block.norm1.output.data(),
                    parameters.attention_weight, wide_gradient_.data(), branch_gradient_.data(),
                    gradients.attention_weight, gradients.attention_bias);
    backward_norm(block.norm1, parameters.norm1_gain, gradients.norm1_gain, gradients.norm1_shift);
}

template <typename Real>
void Gpt<Real>::forward_norm(const Real* input, const Real* gain, const Real* shift, Norm& norm) {
    norm_forward(shape_.rows(), config_.width, input, gain, shift, norm.normalised.data(),
                 norm.inverse_deviation.data(), norm.output.data());
}

// From branch_gradient_ (the norm's output) into stream_gradient_ (its input).
template <typename Real>
void Gpt<Real>::backward_norm(const Norm& norm, const Real* gain, Real* gain_gradient,
                              Real* shift_gradient) {
    norm_backward(shape_.rows(), config_.width, norm.normalised.data(),
                  norm.inverse_deviation.data(), gain, branch_gradient_.data(),
                  stream_gradient_.data(), gain_gradient, shift_gradient);
}

template class Gpt<float>;
template class Gpt<double>;

}  // namespace train_gpt
