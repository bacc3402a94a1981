// A training run in miniature: steps that need all ranks, a checkpoint, and a crash in the middle.
// ddrun starts the next round; the ranks read the checkpoint and go on as if nothing had happened.
//
//   ddrun --nproc-per-node=2 --max-restarts=1 ./03_survive_a_crash --crash-at=25
#include <ddrun/worker.hpp>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

namespace {

constexpr std::int64_t last_step = 100;
constexpr std::int64_t samples_per_step = 8;
constexpr std::int64_t steps_per_checkpoint = 10;
const std::filesystem::path checkpoint = "survive_a_crash.checkpoint";

// All there is to learn: the same on every rank after every step.
struct State {
    std::int64_t step = 0;
    std::int64_t counter = 0;
};

// Written aside and renamed, so that a crash leaves the old checkpoint or the new one, never half.
void save(const State& state) {
    const std::filesystem::path draft = checkpoint.string() + ".draft";
    std::ofstream(draft) << state.step << ' ' << state.counter << '\n';
    std::filesystem::rename(draft, checkpoint);
}

State load() {
    State state;
    std::ifstream(checkpoint) >> state.step >> state.counter;  // without a file: step 0
    return state;
}

// Sample number n is worth n. The ranks share the samples of a step, so each counts once, and the
// same ones whatever the number of ranks.
std::int64_t own_share(const ddrun::Worker& worker, std::int64_t step) {
    std::int64_t sum = 0;
    for (std::int64_t i = worker.rank(); i < samples_per_step; i += worker.world_size())
        sum += step * samples_per_step + i;
    return sum;
}

void train_one_step(ddrun::Worker& worker, State& state) {
    std::vector<std::int64_t> sum = {own_share(worker, state.step)};
    worker.process_group().all_reduce(sum);
    state.counter += sum[0];
    ++state.step;
}

int train(ddrun::Worker& worker, std::optional<std::int64_t> crash_at) {
    State state = load();
    // Nobody may overwrite the checkpoint before all have read it.
    worker.process_group().barrier();
    worker.log().info("round ", worker.round(), ": starting at step ", state.step);
    while (state.step < last_step && !worker.should_stop()) {
        train_one_step(worker, state);
        worker.progress(state.step);
        const bool is_last_rank = worker.rank() == worker.world_size() - 1;
        if (worker.round() == 1 && is_last_rank && state.step == crash_at) std::raise(SIGKILL);
        if (worker.rank() == 0 && state.step % steps_per_checkpoint == 0) save(state);
    }
    if (state.step < last_step) {  // asked to stop: the next run goes on from here
        if (worker.rank() == 0) save(state);
        return 0;
    }
    constexpr std::int64_t samples = last_step * samples_per_step;
    const bool right = state.counter == samples * (samples - 1) / 2;  // each of them once
    worker.log().info("finished ", state.step, " steps, counter ", state.counter,
                      right ? ": every sample once" : ": WRONG");
    if (worker.rank() == 0) std::filesystem::remove(checkpoint);
    return right ? 0 : 1;
}

// --crash-at=STEP, or nothing.
std::optional<std::int64_t> crash_step(int argc, char** argv) {
    constexpr std::string_view flag = "--crash-at=";
    std::int64_t step = 0;
    if (argc < 2 || std::string_view(argv[1]).substr(0, flag.size()) != flag) return std::nullopt;
    std::from_chars(argv[1] + flag.size(), argv[1] + std::strlen(argv[1]), step);
    return step;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        auto worker = ddrun::Worker::from_environment();
        return train(worker, crash_step(argc, argv));
    } catch (const ddrun::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_code();
    }
}
