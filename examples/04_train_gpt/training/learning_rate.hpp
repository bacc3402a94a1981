#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace train_gpt {

struct LearningRateSchedule {
    double peak = 2e-3;
    std::uint64_t warmup_steps = 50;
    std::uint64_t total_steps = 1000;
    double final_share = 0.1;  // of the peak, at the last step
};

// Rises in a line to the peak, then falls along half a cosine. steps count from 0.
inline double learning_rate_at(const LearningRateSchedule& schedule, std::uint64_t step) {
    if (step < schedule.warmup_steps) {
        return schedule.peak * static_cast<double>(step + 1) /
               static_cast<double>(schedule.warmup_steps);
    }
    if (step >= schedule.total_steps) return schedule.peak * schedule.final_share;
    const double progress = static_cast<double>(step - schedule.warmup_steps) /
                            static_cast<double>(schedule.total_steps - schedule.warmup_steps);
    const double height = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    return schedule.peak * (schedule.final_share + (1.0 - schedule.final_share) * height);
}

}  // namespace train_gpt
