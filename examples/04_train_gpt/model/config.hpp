#pragma once

namespace train_gpt {

// The shape of the network. `width` must be a multiple of `heads`.
struct ModelConfig {
    int vocabulary = 0;  // number of different tokens
    int context = 64;    // tokens seen at once
    int layers = 4;
    int heads = 4;
    int width = 128;  // numbers per token in the residual stream

    bool operator==(const ModelConfig&) const = default;
};

// The shape of one batch: `batch` samples of `length` tokens each.
struct BatchShape {
    int batch = 0;
    int length = 0;

    int rows() const { return batch * length; }
};

}  // namespace train_gpt
