#include "examples/04_train_gpt/data/vocabulary.hpp"

#include <stdexcept>

namespace train_gpt {
namespace {

constexpr auto absent = -1;

}  // namespace

Vocabulary::Vocabulary(std::string_view text) {
    std::array<bool, 256> occurs{};
    for (const char byte : text) occurs[static_cast<unsigned char>(byte)] = true;
    tokens_.fill(absent);
    for (int value = 0; value < 256; ++value) {
        if (!occurs[value]) continue;
        tokens_[value] = size();
        bytes_.push_back(static_cast<char>(value));
    }
}

std::vector<Token> Vocabulary::encode(std::string_view text) const {
    std::vector<Token> encoded;
    encoded.reserve(text.size());
    for (const char byte : text) {
        const int value = static_cast<unsigned char>(byte);
        if (tokens_[value] == absent) {
            throw std::invalid_argument("byte " + std::to_string(value) +
                                        " does not occur in the training text");
        }
        encoded.push_back(static_cast<Token>(tokens_[value]));
    }
    return encoded;
}

}  // namespace train_gpt
