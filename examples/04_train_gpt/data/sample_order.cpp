#include "examples/04_train_gpt/data/sample_order.hpp"

#include "examples/04_train_gpt/data/counter_hash.hpp"

#include <bit>
#include <cassert>

namespace train_gpt {
namespace {

constexpr auto feistel_rounds = 4;

// A bijection of [0, 4^half_bits), another one for each key.
std::uint64_t scramble(std::uint64_t value, int half_bits, std::uint64_t key) {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
    std::uint64_t left = value >> half_bits;
    std::uint64_t right = value & mask;
    for (int round = 0; round < feistel_rounds; ++round) {
        const std::uint64_t mixed = left ^ (counter_hash(key, round, right) & mask);
        left = right;
        right = mixed;
    }
    return left << half_bits | right;
}

}  // namespace

SampleOrder::SampleOrder(std::uint64_t seed, std::size_t tokens, int context)
    : seed_(seed),
      context_(static_cast<std::uint64_t>(context)),
      windows_(tokens / context_ - 1),
      half_bits_(static_cast<int>(std::bit_width(windows_) + 1) / 2) {
    assert(tokens >= 2 * context_);
}

std::size_t SampleOrder::first_token(std::uint64_t sample) const {
    const std::uint64_t epoch_key = counter_hash(seed_, sample / windows_);
    // The bijection's range is up to four times too large: step on until a window is met.
    std::uint64_t window = sample % windows_;
    do {
        window = scramble(window, half_bits_, epoch_key);
    } while (window >= windows_);
    return window * context_ + mix_bits(epoch_key) % context_;
}

}  // namespace train_gpt
