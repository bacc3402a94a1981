#include "worker_sdk/src/cpu/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

namespace ddrun::detail {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                std::chrono::nanoseconds longest) {
    if (longest <= std::chrono::nanoseconds::zero()) return;
    timespec left{};
    left.tv_sec = static_cast<time_t>(longest / std::chrono::seconds(1));
    left.tv_nsec = static_cast<long>((longest % std::chrono::seconds(1)).count());
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &left, nullptr, 0);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace ddrun::detail
