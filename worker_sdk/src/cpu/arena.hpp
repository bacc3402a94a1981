#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "worker_sdk/core/collective_call.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ddrun::detail {

constexpr std::size_t cache_line = 64;

// What a rank shows the others about one call. Two of them alternate: a rank can be at most one
// call ahead of the slowest reader.
struct Announcement {
    Call call;
    std::uint64_t heap_offset = 0;  // of its buffer in its own heap, where `in_heap`
    bool in_heap = false;
    bool wants_stop = false;
};

// One rank's part of the shared header. Written by that rank only, but for `alive`.
struct alignas(cache_line) Slot {
    std::atomic<std::uint64_t> arrivals;  // meetings this rank has come to
    std::atomic<std::uint32_t> joined;    // `alive` is valid
    alignas(cache_line) std::array<Announcement, 2> announcements;
    // Robust, and held by the rank's control thread for as long as it is in the group: the kernel
    // marks it when the process dies, whatever the reason.
    pthread_mutex_t alive;
};

struct SharedHeader {
    // The meeting point; see meeting.hpp.
    alignas(cache_line) std::atomic<std::uint32_t> gate;
    alignas(cache_line) std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> sleepers;
    alignas(cache_line) std::atomic<std::uint64_t> fault;  // pack(Fault); 0: none
    std::atomic<std::uint64_t> layout;                     // layout_version, set by the first rank
};

// The memory that the ranks of one node share in one round: header, slots, then a window for each
// rank (through which buffers of ordinary memory travel), then a heap for each (for allocate()). It
// starts as zeros, which is a valid empty state of everything in it. Pages cost memory once
// touched.
struct ArenaShape {
    int ranks = 1;
    std::size_t window_bytes = 0;
    std::size_t heap_bytes = 0;

    [[nodiscard]] std::size_t slots_at() const;
    [[nodiscard]] std::size_t windows_at() const;
    [[nodiscard]] std::size_t heaps_at() const;
    [[nodiscard]] std::size_t total() const;
};

class Arena {
  public:
    static constexpr std::uint64_t layout_version = 1;

    // Maps `memory`, which has shape.total() bytes. Throws Error{system}, or Error{refused} where
    // another rank was built with a different layout.
    Arena(const UniqueFd& memory, const ArenaShape& shape);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    [[nodiscard]] const ArenaShape& shape() const { return shape_; }
    [[nodiscard]] SharedHeader& header() const;
    [[nodiscard]] std::span<Slot> slots() const;
    [[nodiscard]] std::byte* window(int rank) const;
    [[nodiscard]] std::byte* heap(int rank) const;

  private:
    ArenaShape shape_;
    std::byte* base_ = nullptr;
};

}  // namespace ddrun::detail
