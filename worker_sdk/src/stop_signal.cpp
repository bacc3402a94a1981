#include "worker_sdk/src/stop_signal.hpp"

#include <signal.h>

#include <atomic>

namespace ddrun::detail {
namespace {

std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free, "written by a signal handler");

void remember(int signal) {
    received.store(signal, std::memory_order_relaxed);
}

void arm(int signal) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
    struct sigaction ours {};
    ours.sa_handler = remember;
    ours.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    ::sigfillset(&ours.sa_mask);
    ::sigaction(signal, &ours, nullptr);
}

bool arm_all() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) arm(signal);
    return true;
}

}  // namespace

void arm_stop_signals() {
    [[maybe_unused]] static const bool armed = arm_all();
}

int received_stop_signal() noexcept {
    return received.load(std::memory_order_relaxed);
}

}  // namespace ddrun::detail
