#include "worker_sdk/src/cpu/meeting.hpp"

#include "worker_sdk/src/cpu/futex.hpp"
#include "worker_sdk/src/cpu/presence.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::detail {
namespace {

constexpr std::uint32_t broken_bit = 1;
constexpr std::uint32_t one_meeting = 2;
// How long a sleeper goes without asking whether the missing ranks live. The agent's notice is
// usually first; this is for when it is not.
constexpr Duration first_check = std::chrono::milliseconds(10);
constexpr Duration longest_check = std::chrono::milliseconds(160);

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

bool is_broken(std::uint32_t gate) {
    return (gate & broken_bit) != 0;
}

bool was_held(std::uint32_t gate, std::uint32_t seen) {
    return ((gate ^ seen) & ~broken_bit) != 0;
}

}  // namespace

Meeting::Meeting(const Arena& arena, int rank, std::vector<int> world_ranks, int spins)
    : header_(arena.header()),
      slots_(arena.slots()),
      rank_(rank),
      world_ranks_(std::move(world_ranks)),
      spins_(spins) {}

bool Meeting::meet(TimePoint deadline) {
    const std::uint32_t seen = header_.gate.load(std::memory_order_acquire);
    if (is_broken(seen)) return false;
    ++meetings_;
    // A rank that dies or stops anywhere before its part is done must be seen as missing: so it
    // says that it has come when the others need nothing more of it.
    auto& arrivals = slots_[static_cast<std::size_t>(rank_)].arrivals;
    const auto before = header_.arrived.fetch_add(1, std::memory_order_acq_rel);
    if (before + 1 < slots_.size()) {
        arrivals.store(meetings_, std::memory_order_release);
        return wait_until_turned(seen, deadline);
    }
    header_.arrived.store(0, std::memory_order_relaxed);
    // Sequentially consistent on both sides: either this sees the sleeper, or it sees the new gate.
    header_.gate.fetch_add(one_meeting, std::memory_order_seq_cst);
    arrivals.store(meetings_, std::memory_order_release);
    if (header_.sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_all(header_.gate);
    return true;
}

bool Meeting::wait_until_turned(std::uint32_t seen, TimePoint deadline) {
    for (int i = 0; i < spins_; ++i) {
        if (header_.gate.load(std::memory_order_acquire) != seen) break;
        pause_briefly();
    }
    if (header_.gate.load(std::memory_order_acquire) == seen) sleep_until_turned(seen, deadline);
    return was_held(header_.gate.load(std::memory_order_acquire), seen);
}

void Meeting::sleep_until_turned(std::uint32_t seen, TimePoint deadline) {
    Duration check = first_check;
    header_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    while (header_.gate.load(std::memory_order_seq_cst) == seen) {
        const Duration left = deadline - std::chrono::steady_clock::now();
        if (left <= Duration::zero()) {
            const auto late = missing();
            const int first = late.empty() ? -1 : late.front();
            break_up({Fault::Kind::timed_out, first, self()});
            break;
        }
        futex_wait(header_.gate, seen, std::min(left, check));
        if (header_.gate.load(std::memory_order_seq_cst) != seen) break;
        check_on_missing();
        check = std::min(check * 2, longest_check);
    }
    header_.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void Meeting::check_on_missing() {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        if (slots_[slot].arrivals.load(std::memory_order_acquire) < meetings_ &&
            !is_present(slots_[slot]))
            return break_up({Fault::Kind::peer_lost, world_ranks_[slot], self()});
}

void Meeting::break_up(const Fault& fault) {
    std::uint64_t none = 0;
    header_.fault.compare_exchange_strong(none, pack(fault));
    header_.gate.fetch_or(broken_bit, std::memory_order_seq_cst);
    futex_wake_all(header_.gate);
}

Fault Meeting::fault() const {
    return unpack(header_.fault.load(std::memory_order_acquire));
}

std::vector<int> Meeting::missing() const {
    std::vector<int> late;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        if (slots_[slot].arrivals.load(std::memory_order_acquire) < meetings_)
            late.push_back(world_ranks_[slot]);
    return late;
}

}  // namespace ddrun::detail
