#pragma once

#include "worker_sdk/src/fork_guard.hpp"

#include <ddrun/work.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace ddrun::detail {

class WorkState {
  public:
    explicit WorkState(std::uint64_t sequence) : sequence_(sequence) {}

    [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
    [[nodiscard]] bool is_done() const;
    [[nodiscard]] bool wait_until(std::optional<std::chrono::steady_clock::time_point> end) const;
    void finish(std::exception_ptr error);
    void rethrow() const;

  private:
    const std::uint64_t sequence_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    bool done_ = false;
    std::exception_ptr error_;
};

// The calls of one group, one after another in the order in which they were made. A call that is
// waited for runs on the thread that makes it where nothing is before it; others run on a thread
// that starts with the first of them.
class CallQueue {
  public:
    using Call = std::function<void()>;

    CallQueue() = default;
    ~CallQueue() { close(); }
    CallQueue(const CallQueue&) = delete;
    CallQueue& operator=(const CallQueue&) = delete;

    // Throws what `call` throws; Error{invalid_use} where another thread is inside run(), after
    // close(), or in a forked child.
    void run(const Call& call);
    [[nodiscard]] std::shared_ptr<WorkState> post(Call call);
    // Calls that have not begun fail; waits for the one that runs. In a forked child: nothing.
    void close();

  private:
    struct Posted {
        Call call;
        std::shared_ptr<WorkState> state;
    };
    void check_open() const;
    [[nodiscard]] std::shared_ptr<WorkState> add(Call call);
    void serve();

    ForkGuard guard_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Posted> posted_;
    std::uint64_t calls_ = 0;
    bool inside_ = false;   // a call runs, on whatever thread
    bool waiting_ = false;  // a thread is inside run()
    bool closed_ = false;
    std::thread thread_;
};

}  // namespace ddrun::detail
