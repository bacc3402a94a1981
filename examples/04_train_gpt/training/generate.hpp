#pragma once

#include "examples/04_train_gpt/data/vocabulary.hpp"
#include "examples/04_train_gpt/model/gpt.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace train_gpt {

struct GenerateSettings {
    int tokens = 300;
    double temperature = 0.8;  // below 1: likely tokens become likelier
    std::uint64_t seed = 1;
};

// Continues `prompt` (at least one token) token by token and returns what was added, as text. A
// pure function of its arguments.
std::string generate_text(Gpt<float>& model, const ModelConfig& config,
                          std::span<const float> parameters, const Vocabulary& vocabulary,
                          std::vector<Token> prompt, const GenerateSettings& settings);

}  // namespace train_gpt
