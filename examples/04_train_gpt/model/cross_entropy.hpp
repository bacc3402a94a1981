#pragma once

#include "examples/04_train_gpt/model/layers.hpp"

#include <span>

namespace train_gpt {

// Sum over the rows of -log(probability of the row's target), in nats. logits: [rows, vocabulary].
template <typename Real>
double cross_entropy(std::span<const Token> targets, int vocabulary, const Real* logits);

// Turns logits into their gradient, in place: scale * (probability - 1 at the target).
template <typename Real>
void cross_entropy_backward(std::span<const Token> targets, int vocabulary, Real scale,
                            Real* logits);

}  // namespace train_gpt
