#include "examples/04_train_gpt/training/generate.hpp"

#include "examples/04_train_gpt/data/counter_hash.hpp"

#include <algorithm>
#include <cmath>

namespace train_gpt {
namespace {

constexpr auto draw_stream =
    std::uint64_t{0x67656e6572617465};  // apart from the other uses of a seed

// Draws from softmax(logits / temperature).
Token draw_token(std::span<const float> logits, double temperature, double uniform) {
    const float top = *std::max_element(logits.begin(), logits.end());
    std::vector<double> reached;
    double mass = 0.0;
    for (const float logit : logits) {
        mass += std::exp(static_cast<double>(logit - top) / temperature);
        reached.push_back(mass);
    }
    const auto drawn = std::upper_bound(reached.begin(), reached.end(), uniform * mass);
    return static_cast<Token>(
        std::min<std::ptrdiff_t>(drawn - reached.begin(), std::ssize(logits) - 1));
}

}  // namespace

std::string generate_text(Gpt<float>& model, const ModelConfig& config,
                          std::span<const float> parameters, const Vocabulary& vocabulary,
                          std::vector<Token> prompt, const GenerateSettings& settings) {
    std::string text;
    for (int index = 0; index < settings.tokens; ++index) {
        const auto seen = std::min(static_cast<std::size_t>(config.context), prompt.size());
        const auto window = std::span<const Token>(prompt).last(seen);
        model.forward(parameters, window, {1, static_cast<int>(seen)});
        const double uniform = to_unit_interval(counter_hash(settings.seed, draw_stream, index));
        const auto last = model.logits().last(static_cast<std::size_t>(config.vocabulary));
        prompt.push_back(draw_token(last, settings.temperature, uniform));
        text.push_back(vocabulary.decode(prompt.back()));
    }
    return text;
}

}  // namespace train_gpt
