#include "examples/04_train_gpt/data/corpus.hpp"

#include "examples/04_train_gpt/data/digest.hpp"
#include "examples/04_train_gpt/setup_error.hpp"

#include <algorithm>
#include <string>

namespace train_gpt {
namespace {

// Ten contexts leave one for validation and some choice for training.
std::size_t require_length(std::string_view text, int context) {
    const std::size_t least = 11 * (static_cast<std::size_t>(context) + 1);
    if (text.size() < least) {
        throw SetupError("the text has " + std::to_string(text.size()) + " bytes; a context of " +
                         std::to_string(context) + " needs at least " + std::to_string(least));
    }
    return text.size() - text.size() / 10;
}

}  // namespace

SampleRange share_of(std::uint64_t samples, int rank, int world_size) {
    const auto part = static_cast<std::uint64_t>(rank);
    const auto parts = static_cast<std::uint64_t>(world_size);
    const std::uint64_t first = samples * part / parts;
    return {first, samples * (part + 1) / parts - first};
}

Corpus::Corpus(std::string_view text, int context, std::uint64_t seed)
    : vocabulary_(text),
      tokens_(vocabulary_.encode(text)),
      split_(require_length(text, context)),
      context_(context),
      digest_(digest_of(text)),
      order_(seed, split_, context) {}

Batch Corpus::training_batch(SampleRange range) const {
    Batch batch{{static_cast<int>(range.count), context_}, {}, {}};
    for (std::uint64_t sample = range.first; sample < range.first + range.count; ++sample) {
        append(order_.first_token(sample), batch);
    }
    return batch;
}

std::uint64_t Corpus::validation_windows() const {
    return (validation_tokens() - 1) / static_cast<std::uint64_t>(context_);
}

Batch Corpus::validation_batch(SampleRange range) const {
    Batch batch{{static_cast<int>(range.count), context_}, {}, {}};
    for (std::uint64_t window = range.first; window < range.first + range.count; ++window) {
        append(split_ + window * static_cast<std::uint64_t>(context_), batch);
    }
    return batch;
}

std::vector<Token> Corpus::validation_opening(std::size_t count) const {
    const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(split_);
    return {first, first + static_cast<std::ptrdiff_t>(std::min(count, validation_tokens()))};
}

void Corpus::append(std::size_t first, Batch& batch) const {
    const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(first);
    batch.tokens.insert(batch.tokens.end(), begin, begin + context_);
    batch.targets.insert(batch.targets.end(), begin + 1, begin + 1 + context_);
}

}  // namespace train_gpt
