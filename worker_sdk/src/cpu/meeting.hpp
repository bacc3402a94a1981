#pragma once

#include "rendezvous/protocol/time.hpp"
#include "worker_sdk/core/fault.hpp"
#include "worker_sdk/src/cpu/arena.hpp"

#include <cstdint>
#include <vector>

namespace ddrun::detail {

// Where all ranks wait for one another, over and over. The last to arrive turns the gate; the
// others look at it for a moment, then sleep on it as a futex.
//
//   gate:  bit 0   broken for good: header.fault says why
//          bits 1- number of meetings held, wrapping around
//
// Since breaking changes the gate itself, no sleeper can miss it. A meeting that was held counts as
// held even if the gate broke right after: every rank gives the same answer.
class Meeting {
  public:
    // `rank` is this rank's slot, `world_ranks` who is in which. `spins`: how often to look before
    // sleeping; more pays only where every rank has a core.
    Meeting(const Arena& arena, int rank, std::vector<int> world_ranks, int spins);

    // Waits for all ranks. False: broken; fault() says why. At `deadline` it breaks the gate
    // itself.
    [[nodiscard]] bool meet(TimePoint deadline);

    // Breaks the gate for all ranks, if it is whole. Any thread.
    void break_up(const Fault& fault);

    [[nodiscard]] Fault fault() const;
    // Ranks of the world that have been to fewer meetings than this one.
    [[nodiscard]] std::vector<int> missing() const;

  private:
    [[nodiscard]] bool wait_until_turned(std::uint32_t seen, TimePoint deadline);
    void sleep_until_turned(std::uint32_t seen, TimePoint deadline);
    void check_on_missing();
    [[nodiscard]] int self() const { return world_ranks_[static_cast<std::size_t>(rank_)]; }

    SharedHeader& header_;
    std::span<Slot> slots_;
    int rank_;
    std::vector<int> world_ranks_;
    int spins_;
    std::uint64_t meetings_ = 0;
};

}  // namespace ddrun::detail
