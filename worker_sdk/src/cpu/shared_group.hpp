#pragma once

#include "worker_sdk/core/collective_plan.hpp"
#include "worker_sdk/src/cpu/arena.hpp"
#include "worker_sdk/src/cpu/group_hooks.hpp"
#include "worker_sdk/src/cpu/meeting.hpp"
#include "worker_sdk/src/fork_guard.hpp"

#include <ddrun/process_group.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ddrun::detail {

// All ranks of one node, over one arena.
//
// A buffer travels in pieces through its rank's window, unless it lies in the rank's heap, where
// the others reach it directly. A window has two halves, so that one piece is put in while the last
// is worked on. Every operation has the same course:
//
//   put in piece 0 · meet · compare calls · for each piece: work · put in the next · meet · take
//   out
//
// all_reduce: a rank's work is its part of the piece: it combines that part of all ranks' buffers
// and writes the result into all of them. reduce_scatter: the same, into its own output. all_gather
// and broadcast: it copies from the others, and there is nothing to take out.
class SharedGroup final : public ProcessGroup {
  public:
    struct Settings {
        int rank = 0;                  // this rank's slot
        std::vector<int> world_ranks;  // by slot
        std::chrono::milliseconds timeout{};
        int spins = 0;
    };
    SharedGroup(std::unique_ptr<Arena> arena, const Settings& settings, GroupHooks hooks);
    // Tells the others that this rank is not coming any more. In a forked child: nothing.
    ~SharedGroup() override;

    // Every wait in the group, on every rank, ends with this. Any thread.
    void break_up(const Fault& fault) { meeting_.break_up(fault); }
    [[nodiscard]] Fault fault() const { return meeting_.fault(); }
    [[nodiscard]] Slot& own_slot() const { return slots_[static_cast<std::size_t>(self_)]; }

    [[nodiscard]] int rank() const noexcept override { return self_; }
    [[nodiscard]] int size() const noexcept override { return static_cast<int>(slots_.size()); }

    // Parts of one call of a group of several nodes: compared and told of as that call.
    void speak_for(const Call& whole) { whole_ = whole; }

    void do_barrier(const CallOptions& options) override;
    void do_all_reduce(void* data, Shape shape, ReduceOp op, const CallOptions& options) override;
    void do_broadcast(void* data, Shape shape, int root, const CallOptions& options) override;
    void do_all_gather(const void* input, Shape input_shape, void* output, std::size_t output_count,
                       const CallOptions& options) override;
    void do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                           Shape output_shape, ReduceOp op, const CallOptions& options) override;
    void* do_allocate(std::size_t count, std::size_t element_bytes) override;

  private:
    // One operation of this rank while it is under way.
    struct Running {
        Call call;
        TimePoint deadline;
        std::size_t element = 1;            // bytes
        const std::byte* buffer = nullptr;  // what the others read; null: nothing
        std::size_t bytes = 0;              // of it
        std::size_t longest = 0;            // elements of a piece where windows are used
    };
    struct Piece {
        Slice slice;
        std::size_t half = 0;  // which half of the windows it travels in
    };

    void check_lengths(const Call& call, std::size_t longer) const;
    [[nodiscard]] Running start(Call call, const void* buffer, std::size_t bytes,
                                const CallOptions& options);
    template <typename PutIn, typename Work, typename TakeOut>
    void run(const Running& running, PutIn put_in, Work work, TakeOut take_out);
    void announce(const Running& running);
    [[nodiscard]] const Call& told(const Running& running) const {
        return whole_ ? *whole_ : running.call;
    }
    [[nodiscard]] int world_rank() const { return world_ranks_[static_cast<std::size_t>(self_)]; }
    void meet(const Running& running);
    void compare_calls(const Running& running);
    [[nodiscard]] bool needs_no_windows(const Running& running) const;
    [[noreturn]] void fail(const Running& running);
    [[noreturn]] void fail_for_good(const Failure& failure);

    void put_in_slice(const Running& running, const Piece& piece);
    [[nodiscard]] const Announcement& announcement(std::size_t rank) const;
    [[nodiscard]] bool uses_heap(std::size_t rank) const { return announcement(rank).in_heap; }
    [[nodiscard]] std::byte* window(std::size_t rank, std::size_t half) const;
    // Where `rank`'s element `index` of its buffer can be reached; in its window element 0 is
    // `window_first`.
    [[nodiscard]] std::byte* reach(const Running& running, std::size_t rank, std::size_t half,
                                   std::size_t index, std::size_t window_first) const;

    std::unique_ptr<Arena> arena_;
    std::span<Slot> slots_;
    int self_;
    std::vector<int> world_ranks_;
    std::chrono::milliseconds timeout_;
    GroupHooks hooks_;
    ForkGuard guard_;
    Meeting meeting_;

    std::optional<Call> whole_;
    std::uint64_t sequence_ = 0;
    std::optional<Failure> broken_;
    std::atomic<std::size_t> heap_used_ = 0;
    std::vector<Call> calls_;  // scratch
    std::vector<const std::byte*> sources_;
    std::vector<std::byte*> sinks_;
};

}  // namespace ddrun::detail
