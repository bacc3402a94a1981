#include "examples/04_train_gpt/trainer.hpp"

#include "examples/04_train_gpt/progress_report.hpp"
#include "examples/04_train_gpt/result_words.hpp"
#include "examples/04_train_gpt/setup_error.hpp"
#include "examples/04_train_gpt/training/adamw.hpp"
#include "examples/04_train_gpt/training/generate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace train_gpt {
namespace {

using Clock = std::chrono::steady_clock;

int local_batch(const ddrun::Worker& worker, std::uint64_t global_batch) {
    const auto ranks = static_cast<std::uint64_t>(worker.world_size());
    if (global_batch % ranks != 0) {
        throw SetupError("--global-batch " + std::to_string(global_batch) +
                         " cannot be divided evenly among " + std::to_string(ranks) +
                         " ranks: give a multiple of " + std::to_string(ranks));
    }
    return static_cast<int>(global_batch / ranks);
}

RunIdentity identify_run(const Arguments& arguments, const Corpus& corpus) {
    RunIdentity run{arguments.model, arguments.seed, arguments.global_batch, corpus.digest()};
    run.model.vocabulary = corpus.vocabulary().size();
    return run;
}

}  // namespace

Trainer::Trainer(ddrun::Worker& worker, const Arguments& arguments)
    : worker_(worker),
      group_(worker.process_group()),
      arguments_(arguments),
      corpus_(read_text(arguments.data), arguments.model.context, arguments.seed),
      run_(identify_run(arguments, corpus_)),
      tensors_(list_tensors(run_.model)),
      schedule_{.peak = arguments.learning_rate,
                .warmup_steps = arguments.warmup_steps,
                .total_steps = arguments.steps},
      model_(run_.model, local_batch(worker, arguments.global_batch)),
      reduced_(group_.allocate<float>(count_parameters(run_.model) + 1)) {
    require_same_setup();
    restore_state();
    share_state();
    if (arguments_.loss_file && worker_.rank() == 0) {
        loss_file_.emplace(*arguments_.loss_file, state_.step);
    }
}

void Trainer::run() {
    worker_.log().info(describe_model(worker_.world_size(), run_));
    worker_.log().info(describe_text(arguments_.data, corpus_));
    if (state_.step == 0) {
        state_.opening_loss = validation_loss();
        worker_.log().info("validation loss before training: ", round_loss(state_.opening_loss));
    } else {
        worker_.log().info("going on from the checkpoint of step ", state_.step);
    }
    try {
        train();
    } catch (const ddrun::PeerLost&) {
        // The step that failed was not applied, so the state is a good one: lose no finished step.
        save_checkpoint();
        throw;
    }
}

// A rank that read another text or got other flags would spoil the others' model unnoticed.
void Trainer::require_same_setup() {
    RunIdentity first = run_;
    const std::array fields{&first.seed, &first.global_batch, &first.text_digest};
    const std::array sizes{&first.model.vocabulary, &first.model.context, &first.model.layers,
                           &first.model.heads, &first.model.width};
    std::vector<std::int64_t> values;
    for (const auto* field : fields) values.push_back(static_cast<std::int64_t>(*field));
    for (const auto* size : sizes) values.push_back(*size);
    group_.broadcast(values, 0);
    auto value = values.begin();
    for (auto* field : fields) *field = static_cast<std::uint64_t>(*value++);
    for (auto* size : sizes) *size = static_cast<int>(*value++);
    if (const auto difference = find_difference(first, run_)) {
        throw SetupError("rank " + std::to_string(worker_.rank()) +
                         " is set up otherwise than rank 0: " + *difference);
    }
}

// Only rank 0 touches the checkpoints: the other ranks may be on machines that do not see them.
void Trainer::restore_state() {
    state_ = make_opening_state(run_);
    if (worker_.rank() != 0) return;
    checkpoints_.emplace(arguments_.checkpoint_folder);
    // After a crash the new attempt goes on from what this same job has saved.
    if (arguments_.fresh && worker_.restart_count() == 0) checkpoints_->clear();
    auto saved = checkpoints_->load_newest(
        run_, [this](const std::string& words) { worker_.log().info(words); });
    if (saved) state_ = std::move(*saved);
    saved_step_ = state_.step;
}

void Trainer::share_state() {
    auto step = std::array{static_cast<std::int64_t>(state_.step)};
    auto opening_loss = std::array{state_.opening_loss};
    group_.broadcast(step, 0);
    group_.broadcast(opening_loss, 0);
    group_.broadcast(state_.parameters, 0);
    group_.broadcast(state_.moments.first, 0);
    group_.broadcast(state_.moments.second, 0);
    state_.step = static_cast<std::uint64_t>(step[0]);
    state_.opening_loss = opening_loss[0];
}

void Trainer::train() {
    ProgressReport progress(worker_.log(), {.total_steps = arguments_.steps,
                                            .samples_per_step = arguments_.global_batch,
                                            .log_every = arguments_.log_every});
    const auto started = Clock::now();
    while (state_.step < arguments_.steps) {
        if (worker_.should_stop()) return stop();
        const std::uint64_t step = state_.step;
        const float loss = train_step();
        worker_.progress(static_cast<std::int64_t>(step));
        progress.step_done(step, loss);
        if (loss_file_) loss_file_->append(step, loss);
        if (state_.step % arguments_.checkpoint_every == 0) save_checkpoint();
    }
    step_time_ = Clock::now() - started;
    save_checkpoint();
    finish(progress.samples_per_second());
}

float Trainer::train_step() {
    const auto ranks = worker_.world_size();
    SampleRange range = share_of(arguments_.global_batch, worker_.rank(), ranks);
    range.first += state_.step * arguments_.global_batch;
    const Batch batch = corpus_.training_batch(range);
    const auto gradients = reduced_.first(reduced_.size() - 1);
    // Dividing by the tokens of all ranks makes the sum over the ranks a mean.
    const float scale = 1.0f / static_cast<float>(batch.shape.rows() * ranks);
    std::fill(reduced_.begin(), reduced_.end(), 0.0f);
    model_.forward(state_.parameters, batch.tokens, batch.shape);
    reduced_.back() = scale * static_cast<float>(model_.loss(batch.targets));
    model_.backward(state_.parameters, batch.targets, scale, gradients);
    reduce_gradients();
    const float loss = reduced_.back();
    apply_gradients(gradients, loss);
    return loss;
}

void Trainer::reduce_gradients() {
    const auto started = Clock::now();
    group_.all_reduce(reduced_, ddrun::ReduceOp::sum);
    reduce_time_ += Clock::now() - started;
}

// Every rank does the same with the same bytes, so the models stay equal.
void Trainer::apply_gradients(std::span<const float> gradients, float loss) {
    const double norm = gradient_norm(gradients);
    if (!std::isfinite(loss) || !std::isfinite(norm)) {
        throw SetupError("training diverged at step " + std::to_string(state_.step) +
                         " (loss or gradient is not finite): lower --learning-rate");
    }
    const double scale = std::min(1.0, arguments_.clip / norm);
    AdamSettings settings;
    settings.weight_decay = arguments_.weight_decay;
    apply_adamw(settings, tensors_, state_.step, learning_rate_at(schedule_, state_.step),
                static_cast<float>(scale), gradients, state_.moments,
                std::span<float>(state_.parameters));
    ++state_.step;
}

void Trainer::save_checkpoint() {
    if (!checkpoints_ || saved_step_ == state_.step) return;
    const auto path = checkpoints_->save(run_, state_);
    saved_step_ = state_.step;
    worker_.log().rank("checkpoint ", path.string());
}

void Trainer::stop() {
    // Not an orderly end: this throws PeerLost at once, with the words for it.
    if (worker_.stop_request().reason == ddrun::StopReason::peer_lost) group_.barrier();
    save_checkpoint();
    worker_.log().info("stopped as asked after step ", state_.step,
                       "; the same command goes on from here");
}

double Trainer::validation_loss() {
    const std::uint64_t windows = corpus_.validation_windows();
    const SampleRange mine = share_of(windows, worker_.rank(), worker_.world_size());
    const auto at_once = share_of(arguments_.global_batch, 0, worker_.world_size()).count;
    auto sum = std::array{0.0};
    for (std::uint64_t done = 0; done < mine.count; done += at_once) {
        const auto count = std::min(at_once, mine.count - done);
        const Batch batch = corpus_.validation_batch({mine.first + done, count});
        model_.forward(state_.parameters, batch.tokens, batch.shape);
        sum[0] += model_.loss(batch.targets);
    }
    group_.all_reduce(sum, ddrun::ReduceOp::sum);
    return sum[0] / static_cast<double>(windows * static_cast<std::uint64_t>(run_.model.context));
}

void Trainer::finish(double samples_per_second) {
    const double loss = validation_loss();
    auto& log = worker_.log();
    log.info("validation loss: ", round_loss(state_.opening_loss), " before, ", round_loss(loss),
             " after ", state_.step, " steps (nats per byte)");
    if (step_time_.count() > 0.0 && samples_per_second > 0.0) {
        log.info(
            describe_speed(samples_per_second, reduce_time_ / step_time_, worker_.world_size()));
    }
    if (worker_.rank() == 0 && arguments_.sample_bytes > 0) tell_sample();
}

void Trainer::tell_sample() {
    const auto opening = corpus_.validation_opening(static_cast<std::size_t>(run_.model.context));
    const auto text =
        generate_text(model_, run_.model, state_.parameters, corpus_.vocabulary(), opening,
                      {.tokens = arguments_.sample_bytes,
                       .temperature = arguments_.temperature,
                       .seed = arguments_.seed});
    worker_.log().info("what the model writes:");
    for (const std::string& line : printable_lines(text)) worker_.log().info("  | ", line);
}

}  // namespace train_gpt
