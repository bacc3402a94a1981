#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ddrun {
class Log;
}

namespace train_gpt {

// Tells how far the training is: a line every `log_every` steps and, on a terminal, a status in
// between that replaces itself a few times a second. Rank 0's log prints, the others' stay silent.
class ProgressReport {
  public:
    struct Settings {
        std::uint64_t total_steps = 0;
        std::uint64_t samples_per_step = 0;
        std::uint64_t log_every = 1;
    };

    ProgressReport(ddrun::Log& log, const Settings& settings);

    // Step number `step` is done.
    void step_done(std::uint64_t step, float loss);

    // Over all steps seen so far.
    double samples_per_second() const;

  private:
    using Clock = std::chrono::steady_clock;

    std::string describe(std::uint64_t step, float loss) const;

    ddrun::Log& log_;
    Settings settings_;
    Clock::time_point started_ = Clock::now();
    Clock::time_point shown_{};
    std::uint64_t steps_seen_ = 0;
};

}  // namespace train_gpt
