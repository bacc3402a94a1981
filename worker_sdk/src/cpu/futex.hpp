#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ddrun::detail {

// Sleeps while `word`, in memory that processes share, is `seen`; returns when it is woken, when
// `longest` has passed, or early. The caller looks again.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                std::chrono::nanoseconds longest);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace ddrun::detail
