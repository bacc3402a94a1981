#include "examples/04_train_gpt/training/state.hpp"

#include "examples/04_train_gpt/model/parameters.hpp"

namespace train_gpt {

std::optional<std::string> find_difference(const RunIdentity& there, const RunIdentity& here) {
    std::optional<std::string> difference;
    const auto compare = [&](const char* name, std::uint64_t that, std::uint64_t ours) {
        if (difference || that == ours) return;
        difference = std::string(name) + " " + std::to_string(that) + " there, " +
                     std::to_string(ours) + " here";
    };
    const auto compare_sizes = [&](const char* name, int that, int ours) {
        compare(name, static_cast<std::uint64_t>(that), static_cast<std::uint64_t>(ours));
    };
    compare("text digest", there.text_digest, here.text_digest);
    compare_sizes("vocabulary", there.model.vocabulary, here.model.vocabulary);
    compare_sizes("context", there.model.context, here.model.context);
    compare_sizes("layers", there.model.layers, here.model.layers);
    compare_sizes("heads", there.model.heads, here.model.heads);
    compare_sizes("width", there.model.width, here.model.width);
    compare("global batch", there.global_batch, here.global_batch);
    compare("seed", there.seed, here.seed);
    return difference;
}

TrainingState make_opening_state(const RunIdentity& run) {
    const std::size_t count = count_parameters(run.model);
    TrainingState state;
    state.parameters.resize(count);
    state.moments = {AlignedVector<float>(count), AlignedVector<float>(count)};
    initialise_parameters(run.model, run.seed, std::span<float>(state.parameters));
    return state;
}

}  // namespace train_gpt
