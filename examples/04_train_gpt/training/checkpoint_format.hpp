#pragma once

#include "examples/04_train_gpt/training/state.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace train_gpt {

struct Checkpoint {
    RunIdentity run;
    TrainingState state;
};

// The bytes are no checkpoint of ours, or not as they were written; what() says how.
class DamagedCheckpoint : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Layout, little endian, without gaps: magic "ddrunGPT" · version u32 · vocabulary, context,
// layers, heads, width i32 · seed, global batch, text digest, step u64 · opening loss f64 ·
// parameters, first and second moments f32 · digest u64 of all bytes before it.
std::string encode_checkpoint(const RunIdentity& run, const TrainingState& state);

// Throws DamagedCheckpoint.
Checkpoint decode_checkpoint(std::string_view bytes);

}  // namespace train_gpt
