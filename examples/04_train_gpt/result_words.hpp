#pragma once

#include "examples/04_train_gpt/data/corpus.hpp"
#include "examples/04_train_gpt/training/state.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace train_gpt {

// The sentences in which a run reports itself.

std::string describe_model(int ranks, const RunIdentity& run);

std::string describe_text(const std::filesystem::path& path, const Corpus& corpus);

// reduce_share: the part of the training time spent in all-reduce, waiting for other ranks
// included.
std::string describe_speed(double samples_per_second, double reduce_share, int ranks);

// Three digits behind the point.
std::string round_loss(double loss);

// Text of a model as lines for a terminal: bytes that are no printable ASCII become blanks.
std::vector<std::string> printable_lines(std::string_view text);

}  // namespace train_gpt
