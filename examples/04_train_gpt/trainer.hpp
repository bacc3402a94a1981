#pragma once

#include "examples/04_train_gpt/arguments.hpp"
#include "examples/04_train_gpt/data/corpus.hpp"
#include "examples/04_train_gpt/model/gpt.hpp"
#include "examples/04_train_gpt/training/checkpoint_folder.hpp"
#include "examples/04_train_gpt/training/learning_rate.hpp"
#include "examples/04_train_gpt/training/loss_file.hpp"
#include "examples/04_train_gpt/training/state.hpp"

#include <ddrun/worker.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace train_gpt {

// One rank of the data-parallel training: every rank holds the whole model, computes the gradient
// of its part of each batch, and applies the mean of all.
class Trainer {
  public:
    // Throws SetupError when the arguments, the text or a checkpoint do not fit.
    Trainer(ddrun::Worker& worker, const Arguments& arguments);

    // Trains until the last step or until asked to stop, whichever comes first; either way a
    // checkpoint of the last step done is on disk when it returns.
    void run();

  private:
    void require_same_setup();
    void restore_state();
    void share_state();
    void train();
    float train_step();
    void reduce_gradients();
    void apply_gradients(std::span<const float> gradients, float loss);
    void save_checkpoint();
    void stop();
    void finish(double samples_per_second);
    void tell_sample();
    double validation_loss();

    ddrun::Worker& worker_;
    ddrun::ProcessGroup& group_;
    Arguments arguments_;
    Corpus corpus_;
    RunIdentity run_;
    std::vector<Tensor> tensors_;
    LearningRateSchedule schedule_;
    Gpt<float> model_;
    TrainingState state_;
    // The gradients and, behind them, the loss: what one all-reduce makes equal on all ranks.
    std::span<float> reduced_;
    std::optional<CheckpointFolder> checkpoints_;  // rank 0 only, as is the loss file
    std::optional<LossFile> loss_file_;
    std::uint64_t saved_step_ = 0;
    std::chrono::duration<double> reduce_time_{};
    std::chrono::duration<double> step_time_{};
};

}  // namespace train_gpt
