#pragma once

#include <cstddef>
#include <cstdint>

namespace train_gpt {

// Which piece of the text is sample number n of a training run: a pure function of (seed, n).
// The text is cut into windows of `context` tokens. Every run of windows_per_epoch() consecutive
// samples contains each window once, in another order each time; the cuts move from epoch to epoch.
class SampleOrder {
  public:
    // tokens >= 2 * context.
    SampleOrder(std::uint64_t seed, std::size_t tokens, int context);

    std::uint64_t windows_per_epoch() const { return windows_; }

    // First token of the sample; it and the `context` tokens after it are in the text.
    std::size_t first_token(std::uint64_t sample) const;

  private:
    std::uint64_t seed_;
    std::uint64_t context_;
    std::uint64_t windows_;
    int half_bits_;
};

}  // namespace train_gpt
