#include "examples/04_train_gpt/data/corpus.hpp"
#include "examples/04_train_gpt/model/gpt.hpp"
#include "examples/04_train_gpt/model/matrix.hpp"
#include "examples/04_train_gpt/training/checkpoint_format.hpp"
#include "examples/04_train_gpt/training/generate.hpp"
#include "examples/04_train_gpt/training/learning_rate.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/train_gpt/words.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace train_gpt;

namespace {

const std::string sentence = "the quick brown fox jumps over the lazy dog. ";

std::string make_text() {
    std::string text;
    while (text.size() < 4000) text += sentence;
    return text;
}

// One rank's training, reduced to its state.
class Training {
  public:
    Training() { use_one_blas_thread(); }

    float advance() {
        const Batch batch = corpus_.training_batch({state_.step * 8, 8});
        const float scale = 1.0f / static_cast<float>(batch.shape.rows());
        std::fill(gradients_.begin(), gradients_.end(), 0.0f);
        model_.forward(state_.parameters, batch.tokens, batch.shape);
        const float loss = scale * static_cast<float>(model_.loss(batch.targets));
        model_.backward(state_.parameters, batch.targets, scale, gradients_);
        apply_adamw<float>(AdamSettings{}, list_tensors(run_.model), state_.step, 5e-3, 1.0f,
                           gradients_, state_.moments, state_.parameters);
        ++state_.step;
        return loss;
    }
    std::vector<float> advance(int steps) {
        std::vector<float> losses;
        for (int i = 0; i < steps; ++i) losses.push_back(advance());
        return losses;
    }
    std::string save() const { return encode_checkpoint(run_, state_); }
    void restore(const std::string& bytes) { state_ = decode_checkpoint(bytes).state; }
    std::string generate(std::uint64_t seed) {
        return generate_text(model_, run_.model, state_.parameters, corpus_.vocabulary(),
                             corpus_.vocabulary().encode("the "),
                             {.tokens = 60, .temperature = 0.3, .seed = seed});
    }

  private:
    Corpus corpus_{make_text(), 16, 3};
    RunIdentity run_{{.vocabulary = corpus_.vocabulary().size(),
                      .context = 16,
                      .layers = 2,
                      .heads = 2,
                      .width = 32},
                     3,
                     8,
                     corpus_.digest()};
    Gpt<float> model_{run_.model, 8};
    TrainingState state_ = make_opening_state(run_);
    AlignedVector<float> gradients_ = AlignedVector<float>(state_.parameters.size());
};

}  // namespace

TEST_CASE("the first loss is that of guessing, and training brings it down") {
    Training training;
    const auto losses = training.advance(60);
    CHECK(losses.front() == Approx(std::log(28.0)).margin(0.1));
    CHECK(losses.back() < 1.0f);
}

TEST_CASE("a run resumed from a checkpoint repeats the undisturbed one bit by bit") {
    Training undisturbed;
    undisturbed.advance(5);
    const std::string checkpoint = undisturbed.save();
    const auto expected = undisturbed.advance(5);
    Training resumed;
    resumed.restore(checkpoint);
    CHECK(resumed.advance(5) == expected);
    CHECK(resumed.save() == undisturbed.save());
}

TEST_CASE("a trained model writes words of its text, the same ones for the same seed") {
    Training training;
    training.advance(150);
    const std::string text = training.generate(1);
    CHECK(text.size() == 60);
    CHECK(text == training.generate(1));
    const bool has_a_word = contains(text, "quick") || contains(text, "brown") ||
                            contains(text, "lazy") || contains(text, "jumps");
    CHECK(has_a_word);
}

TEST_CASE("start values depend on configuration and seed only") {
    const ModelConfig config{.vocabulary = 9, .context = 4, .layers = 1, .heads = 1, .width = 8};
    std::vector<float> first(count_parameters(config));
    std::vector<float> second(first.size());
    std::vector<float> other(first.size());
    initialise_parameters(config, 1, std::span<float>(first));
    initialise_parameters(config, 1, std::span<float>(second));
    initialise_parameters(config, 2, std::span<float>(other));
    CHECK(first == second);
    CHECK(first != other);
}

TEST_CASE("the learning rate rises in a line, falls along a cosine, and ends at its share") {
    const LearningRateSchedule schedule{
        .peak = 2.0, .warmup_steps = 4, .total_steps = 104, .final_share = 0.1};
    CHECK(learning_rate_at(schedule, 0) == Approx(0.5));
    CHECK(learning_rate_at(schedule, 3) == Approx(2.0));
    CHECK(learning_rate_at(schedule, 4) == Approx(2.0));
    CHECK(learning_rate_at(schedule, 54) == Approx(1.1));
    CHECK(learning_rate_at(schedule, 104) == Approx(0.2));
    CHECK(learning_rate_at(schedule, 1000) == Approx(0.2));
    const LearningRateSchedule only_warmup{.peak = 1.0, .warmup_steps = 4, .total_steps = 4};
    CHECK(learning_rate_at(only_warmup, 3) == Approx(1.0));
    CHECK(std::isfinite(learning_rate_at(only_warmup, 4)));
}
