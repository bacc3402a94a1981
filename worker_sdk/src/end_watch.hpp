#pragma once

#include "worker_sdk/core/agent_link.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace ddrun::detail {

// Who wants to hear that no wait for a peer can finish any more. Any thread.
class EndWatch {
  public:
    using Listener = std::function<void(const Failure&)>;

    // Heard at once where it has come to that already. A listener must not block, nor call back.
    [[nodiscard]] int add(Listener listener) {
        const std::lock_guard lock(mutex_);
        if (end_) listener(*end_);
        listeners_.emplace(++last_, std::move(listener));
        return last_;
    }
    // When it returns the listener is not running, and will not again.
    void remove(int token) {
        const std::lock_guard lock(mutex_);
        listeners_.erase(token);
    }
    void announce(const Failure& end) {
        const std::lock_guard lock(mutex_);
        end_ = end;
        for (const auto& [token, listener] : listeners_) listener(end);
    }

  private:
    std::mutex mutex_;
    std::optional<Failure> end_;
    std::map<int, Listener> listeners_;
    int last_ = 0;
};

}  // namespace ddrun::detail
