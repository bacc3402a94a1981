#pragma once

#include "examples/04_train_gpt/model/aligned_vector.hpp"
#include "examples/04_train_gpt/model/config.hpp"
#include "examples/04_train_gpt/model/layers.hpp"
#include "examples/04_train_gpt/model/parameters.hpp"

#include <span>
#include <vector>

namespace train_gpt {

// A small GPT: learned positions, pre-norm blocks of causal attention and a GELU network, tied
// head. The parameters stay with the caller; an object holds the intermediate results of one batch.
// One thread. Equal inputs give equal bits on one machine.
template <typename Real>
class Gpt {
  public:
    // Batches of up to max_batch samples can be passed through.
    Gpt(const ModelConfig& config, int max_batch);

    // tokens: shape.rows() of them, sample after sample; shape.length <= context.
    void forward(std::span<const Real> parameters, std::span<const Token> tokens, BatchShape shape);

    // [rows, vocabulary], of the last forward. Gone after backward.
    std::span<const Real> logits() const;

    // Summed cross-entropy of the last forward, in nats.
    double loss(std::span<const Token> targets) const;

    // Adds scale * d loss / d parameters to `gradients`. Once per forward.
    void backward(std::span<const Real> parameters, std::span<const Token> targets, Real scale,
                  std::span<Real> gradients);

  private:
    struct Norm {
        AlignedVector<Real> normalised, inverse_deviation, output;
    };
    struct Block {
        AlignedVector<Real> qkv, weights, attended, middle, expanded, activated, output;
        Norm norm1, norm2;
    };

    void forward_block(const BlockView<const Real>& parameters, const Real* input, Block& block);
    void backward_block(const BlockView<const Real>& parameters, const Block& block,
                        const BlockView<Real>& gradients);
    void forward_norm(const Real* input, const Real* gain, const Real* shift, Norm& norm);
    void backward_norm(const Norm& norm, const Real* gain, Real* gain_gradient,
                       Real* shift_gradient);
    LinearSize linear(int inputs, int outputs) const { return {shape_.rows(), inputs, outputs}; }

    ModelConfig config_;
    int max_batch_;
    BatchShape shape_;
    std::vector<Token> tokens_;
    AlignedVector<Real> embedded_;
    std::vector<Block> blocks_;
    Norm final_norm_;
    AlignedVector<Real> logits_;
    // Backward: the gradient of the residual stream, of one branch of it, and of its wide inside.
    AlignedVector<Real> stream_gradient_, branch_gradient_, wide_gradient_, score_gradient_;
};

}  // namespace train_gpt
