#pragma once

#include "examples/04_train_gpt/data/text.hpp"
#include "examples/04_train_gpt/model/config.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace train_gpt {

// The command line. Each field is explained where its flag is described, in arguments.cpp.
struct Arguments {
    std::filesystem::path data = default_text;
    std::uint64_t steps = 800;
    std::uint64_t global_batch = 32;
    ModelConfig model{.vocabulary = 0, .context = 64, .layers = 3, .heads = 4, .width = 128};
    double learning_rate = 4e-3;
    std::uint64_t warmup_steps = 50;
    double weight_decay = 0.1;
    double clip = 1.0;
    std::uint64_t seed = 1;
    std::filesystem::path checkpoint_folder = "checkpoints";
    std::uint64_t checkpoint_every = 50;
    bool fresh = false;
    std::optional<std::filesystem::path> loss_file;
    std::uint64_t log_every = 50;
    int sample_bytes = 400;
    double temperature = 0.8;
    bool help = false;
};

// `words`: without the program's name. Throws SetupError naming the flag, the value, and what would
// be right.
Arguments parse_arguments(std::span<const char* const> words);

// All flags with their defaults.
std::string usage_text();

}  // namespace train_gpt
