#include "worker_sdk/src/cpu/patience.hpp"

#include <algorithm>

namespace ddrun::detail {
namespace {

constexpr Duration longest_glance = std::chrono::milliseconds(20);

}  // namespace

int Patience::glance() const {
    const auto left = std::clamp<Duration>(deadline - std::chrono::steady_clock::now(),
                                           Duration::zero(), longest_glance);
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void Patience::check(int rank, const char* late) const {
    if (is_stopped()) throw WireTrouble(WireTrouble::Kind::stopped, rank, "the group is broken");
    if (std::chrono::steady_clock::now() >= deadline)
        throw WireTrouble(WireTrouble::Kind::timed_out, rank, late);
}

}  // namespace ddrun::detail
