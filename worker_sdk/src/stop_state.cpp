#include "worker_sdk/src/stop_state.hpp"

#include "worker_sdk/src/stop_signal.hpp"

namespace ddrun::detail {

void StopState::arm() {
    arm_stop_signals();
}

void StopState::request(int signal, std::optional<TimePoint> deadline) {
    {
        const std::lock_guard lock(mutex_);
        signal_ = signal;
        deadline_ = deadline;
    }
    requested_.store(true);
}

void StopState::end_because(const Failure& failure) {
    {
        const std::lock_guard lock(mutex_);
        cause_ = failure.words;
    }
    end();
}

bool StopState::is_wanted() const noexcept {
    return requested_.load() || received_stop_signal() != 0;
}

bool StopState::should_stop() noexcept {
    if (told_.load(std::memory_order_relaxed)) return true;
    const bool stop = ended_.load() || (by_agreement_.load() ? agreed_.load() : is_wanted());
    if (stop) told_.store(true, std::memory_order_relaxed);
    return stop;
}

StopRequest StopState::describe() const {
    const std::lock_guard lock(mutex_);
    const int signal = signal_ != 0 ? signal_ : received_stop_signal();
    if (ended_.load()) return {StopReason::peer_lost, signal, deadline_};
    if (requested_.load() || agreed_.load()) return {StopReason::requested, signal, deadline_};
    if (signal != 0) return {StopReason::signal, signal, std::nullopt};
    return {};
}

std::string StopState::cause() const {
    const std::lock_guard lock(mutex_);
    return cause_;
}

}  // namespace ddrun::detail
