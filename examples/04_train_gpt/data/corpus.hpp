#pragma once

#include "examples/04_train_gpt/data/sample_order.hpp"
#include "examples/04_train_gpt/data/vocabulary.hpp"
#include "examples/04_train_gpt/model/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace train_gpt {

// Inputs, and for each the token that follows it. shape.rows() of both.
struct Batch {
    BatchShape shape;
    std::vector<Token> tokens;
    std::vector<Token> targets;
};

// A range of sample numbers.
struct SampleRange {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

// Part `rank` of `world_size` nearly equal consecutive parts of [0, samples).
SampleRange share_of(std::uint64_t samples, int rank, int world_size);

// The text as tokens: the first 90 % is for training, the rest for validation.
class Corpus {
  public:
    // Throws SetupError, with both sizes, if the text is too short for the context.
    Corpus(std::string_view text, int context, std::uint64_t seed);

    const Vocabulary& vocabulary() const { return vocabulary_; }
    std::size_t training_tokens() const { return split_; }
    std::size_t validation_tokens() const { return tokens_.size() - split_; }
    std::uint64_t digest() const { return digest_; }  // of the text

    // Samples [range.first, +count) of the endless training sequence.
    Batch training_batch(SampleRange range) const;

    // The validation part in consecutive windows of `context` tokens, each once.
    std::uint64_t validation_windows() const;
    Batch validation_batch(SampleRange range) const;

    // The first `count` tokens of the validation part.
    std::vector<Token> validation_opening(std::size_t count) const;

  private:
    void append(std::size_t first, Batch& batch) const;

    Vocabulary vocabulary_;
    std::vector<Token> tokens_;
    std::size_t split_;
    int context_;
    std::uint64_t digest_;
    SampleOrder order_;
};

}  // namespace train_gpt
