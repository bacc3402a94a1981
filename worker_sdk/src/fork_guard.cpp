#include "worker_sdk/src/fork_guard.hpp"

#include <ddrun/error.hpp>

#include <pthread.h>

#include <atomic>

namespace ddrun::detail {
namespace {

std::atomic<int> forks = 0;

// Counted by the child itself, once for each generation.
int count_forks() {
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    return 0;
}

int current_forks() {
    static const int registered = count_forks();
    return registered + forks.load(std::memory_order_relaxed);
}

}  // namespace

ForkGuard::ForkGuard() : forks_at_start_(current_forks()) {}

bool ForkGuard::in_child() const noexcept {
    return forks.load(std::memory_order_relaxed) != forks_at_start_;
}

void ForkGuard::check() const {
    if (in_child())
        throw Error(
            ErrorKind::invalid_use,
            "this process was forked from a worker: only the worker itself may use its Worker");
}

}  // namespace ddrun::detail
