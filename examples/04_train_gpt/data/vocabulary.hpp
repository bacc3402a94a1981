#pragma once

#include "examples/04_train_gpt/model/layers.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace train_gpt {

// One token per byte value that occurs in the text, in byte order.
class Vocabulary {
  public:
    explicit Vocabulary(std::string_view text);

    int size() const { return static_cast<int>(bytes_.size()); }

    // Throws std::invalid_argument naming the byte, where it is not in the vocabulary.
    std::vector<Token> encode(std::string_view text) const;

    char decode(Token token) const { return bytes_[token]; }

  private:
    std::string bytes_;  // of each token
    std::array<int, 256> tokens_;
};

}  // namespace train_gpt
