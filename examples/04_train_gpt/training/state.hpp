#pragma once

#include "examples/04_train_gpt/model/aligned_vector.hpp"
#include "examples/04_train_gpt/model/config.hpp"
#include "examples/04_train_gpt/training/adamw.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace train_gpt {

// What must be equal for a run to go on from a checkpoint, and among the ranks of one run. Settings
// of the optimizer and the number of steps are not here: a run may be continued with others.
struct RunIdentity {
    ModelConfig model;
    std::uint64_t seed = 0;
    std::uint64_t global_batch = 0;
    std::uint64_t text_digest = 0;
};

// The first difference in words ("width 128 there, 64 here"); nullopt when there is none.
std::optional<std::string> find_difference(const RunIdentity& there, const RunIdentity& here);

// Everything a run needs to go on. The same on every rank after every step.
struct TrainingState {
    std::uint64_t step = 0;     // steps applied so far; the next one has this number
    double opening_loss = 0.0;  // validation loss before the first step; set before step 0
    AlignedVector<float> parameters;
    AdamMoments<float> moments;
};

// The state before the first step.
TrainingState make_opening_state(const RunIdentity& run);

}  // namespace train_gpt
