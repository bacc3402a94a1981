#include "examples/04_train_gpt/progress_report.hpp"

#include <ddrun/log.hpp>

#include <array>
#include <cstdio>

namespace train_gpt {
namespace {

constexpr auto status_interval = std::chrono::milliseconds(100);

}  // namespace

ProgressReport::ProgressReport(ddrun::Log& log, const Settings& settings)
    : log_(log), settings_(settings) {}

void ProgressReport::step_done(std::uint64_t step, float loss) {
    ++steps_seen_;
    const auto now = Clock::now();
    if (step + 1 == settings_.total_steps || (step + 1) % settings_.log_every == 0) {
        log_.info(describe(step, loss));
    } else if (now - shown_ >= status_interval) {
        shown_ = now;
        log_.status(describe(step, loss));
    }
}

double ProgressReport::samples_per_second() const {
    const std::chrono::duration<double> elapsed = Clock::now() - started_;
    return static_cast<double>(steps_seen_ * settings_.samples_per_step) / elapsed.count();
}

std::string ProgressReport::describe(std::uint64_t step, float loss) const {
    const double rate = samples_per_second();
    const std::uint64_t left = settings_.total_steps - step - 1;
    const double seconds_left = static_cast<double>(left * settings_.samples_per_step) / rate;
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "step %llu/%llu  loss %.3f  %.0f samples/s  ETA %.0f s",
                  static_cast<unsigned long long>(step + 1),
                  static_cast<unsigned long long>(settings_.total_steps), static_cast<double>(loss),
                  rate, seconds_left);
    return line.data();
}

}  // namespace train_gpt
