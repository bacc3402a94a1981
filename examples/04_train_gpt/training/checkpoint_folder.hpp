#pragma once

#include "examples/04_train_gpt/training/checkpoint_format.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace train_gpt {

// The checkpoints of one run, in a folder of its own, as checkpoint_<step>.gpt. For one process at
// a time (rank 0). Every member throws std::system_error naming the path when the system refuses.
class CheckpointFolder {
  public:
    // Makes the folder, and removes what a killed writer left unfinished.
    explicit CheckpointFolder(std::filesystem::path folder);

    // Removes all checkpoints.
    void clear();

    // Writes the state under its step, whole or not at all, then removes all but the newest two.
    std::filesystem::path save(const RunIdentity& run, const TrainingState& state);

    // The newest checkpoint that is whole; nullopt when there is none. A damaged one on the way is
    // named to `report` in one sentence, set aside as <name>.damaged, and the one before it is
    // tried. Throws SetupError when the checkpoint belongs to another run, saying in what they
    // differ.
    std::optional<TrainingState> load_newest(const RunIdentity& run,
                                             const std::function<void(std::string)>& report);

  private:
    std::filesystem::path folder_;
};

}  // namespace train_gpt
