#include "examples/04_train_gpt/model/cross_entropy.hpp"

#include "examples/04_train_gpt/model/vector_math.hpp"

#include <cmath>

namespace train_gpt {

template <typename Real>
double cross_entropy(std::span<const Token> targets, int vocabulary, const Real* logits) {
    double sum = 0.0;
    for (const Token target : targets) {
        const Real top = lane_maximum(vocabulary, logits);
        const Real mass = lane_sum<Real>(
            vocabulary, [=](int i) { return decaying_exponential(logits[i] - top); });
        sum += static_cast<double>(std::log(mass) + top - logits[target]);
        logits += vocabulary;
    }
    return sum;
}

template <typename Real>
void cross_entropy_backward(std::span<const Token> targets, int vocabulary, Real scale,
                            Real* logits) {
    for (const Token target : targets) {
        const Real top = lane_maximum(vocabulary, logits);
        for (int i = 0; i < vocabulary; ++i) logits[i] = decaying_exponential(logits[i] - top);
        const Real mass = lane_sum<Real>(vocabulary, [=](int i) { return logits[i]; });
        const Real share = scale / mass;
        for (int i = 0; i < vocabulary; ++i) logits[i] *= share;
        logits[target] -= scale;
        logits += vocabulary;
    }
}

template double cross_entropy(std::span<const Token>, int, const float*);
template double cross_entropy(std::span<const Token>, int, const double*);
template void cross_entropy_backward(std::span<const Token>, int, float, float*);
template void cross_entropy_backward(std::span<const Token>, int, double, double*);

}  // namespace train_gpt
