#include "worker_sdk/src/call_queue.hpp"

#include "rendezvous/platform/quiet_thread.hpp"

#include <ddrun/error.hpp>
#include <ddrun/process_group.hpp>

#include <utility>

namespace ddrun {
namespace detail {
namespace {

std::exception_ptr result_of(const CallQueue::Call& call) {
    try {
        call();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

std::exception_ptr group_has_ended() {
    return std::make_exception_ptr(
        Error(ErrorKind::invalid_use, "the process group ended before this call began"));
}

}  // namespace

bool WorkState::is_done() const {
    const std::lock_guard lock(mutex_);
    return done_;
}

bool WorkState::wait_until(std::optional<std::chrono::steady_clock::time_point> end) const {
    std::unique_lock lock(mutex_);
    const auto done = [&] { return done_; };
    if (end) return changed_.wait_until(lock, *end, done);
    changed_.wait(lock, done);
    return true;
}

void WorkState::finish(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    done_ = true;
    changed_.notify_all();
}

void WorkState::rethrow() const {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
}

void CallQueue::check_open() const {
    guard_.check();
    if (closed_) std::rethrow_exception(group_has_ended());
}

void CallQueue::run(const Call& call) {
    guard_.check();
    std::unique_lock lock(mutex_);
    check_open();
    if (waiting_)
        throw Error(ErrorKind::invalid_use,
                    "two threads are inside the process group at once: its calls have an order, "
                    "so one thread must make them");
    waiting_ = true;
    std::exception_ptr error;
    if (posted_.empty() && !inside_) {
        inside_ = true;
        ++calls_;
        lock.unlock();
        error = result_of(call);
        lock.lock();
        inside_ = false;
        if (!posted_.empty()) changed_.notify_all();
    } else {
        const auto state = add(call);
        lock.unlock();
        (void)state->wait_until(std::nullopt);
        error = result_of([&] { state->rethrow(); });
        lock.lock();
    }
    waiting_ = false;
    if (error) std::rethrow_exception(error);
}

std::shared_ptr<WorkState> CallQueue::post(Call call) {
    guard_.check();
    const std::lock_guard lock(mutex_);
    check_open();
    return add(std::move(call));
}

std::shared_ptr<WorkState> CallQueue::add(Call call) {
    if (!thread_.joinable()) thread_ = start_quiet_thread("ddrun-group", [this] { serve(); });
    posted_.push_back({std::move(call), std::make_shared<WorkState>(++calls_)});
    changed_.notify_all();
    return posted_.back().state;
}

void CallQueue::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return closed_ || (!posted_.empty() && !inside_); });
        if (closed_) return;
        const Posted next = std::move(posted_.front());
        posted_.pop_front();
        inside_ = true;
        lock.unlock();
        next.state->finish(result_of(next.call));
        lock.lock();
        inside_ = false;
    }
}

void CallQueue::close() {
    if (guard_.in_child()) {
        if (thread_.joinable()) thread_.detach();  // it does not exist here
        return;
    }
    std::deque<Posted> left;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        left.swap(posted_);
        changed_.notify_all();
    }
    for (const auto& posted : left) posted.state->finish(group_has_ended());
    if (thread_.joinable()) thread_.join();
}

}  // namespace detail

Work::Work(std::shared_ptr<detail::WorkState> state) : state_(std::move(state)) {}

std::uint64_t Work::sequence() const noexcept {
    return state_->sequence();
}

bool Work::is_done() const noexcept {
    return state_->is_done();
}

void Work::wait() const {
    (void)state_->wait_until(std::nullopt);
    state_->rethrow();
}

bool Work::wait_for(std::chrono::milliseconds longest) const {
    if (!state_->wait_until(std::chrono::steady_clock::now() + longest)) return false;
    state_->rethrow();
    return true;
}

ProcessGroup::ProcessGroup() : queue_(std::make_unique<detail::CallQueue>()) {}
ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::run(const std::function<void()>& call) {
    queue_->run(call);
}

Work ProcessGroup::post(std::function<void()> call) {
    return Work(queue_->post(std::move(call)));
}

void ProcessGroup::end_calls() {
    queue_->close();
}

}  // namespace ddrun
