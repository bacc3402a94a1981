#pragma once

#include <memory>
#include <utility>

namespace ddrun {

namespace detail {
template <typename T>
class PendingSource {
  public:
    PendingSource() = default;
    PendingSource(const PendingSource&) = delete;
    PendingSource& operator=(const PendingSource&) = delete;
    virtual ~PendingSource() = default;
    virtual bool is_ready() = 0;
    virtual T take() = 0;
};
}  // namespace detail

// The answer to a request that was sent without waiting for it. Dropped without get(), the request
// is done all the same, and what the answer was, an error too, is not known. May outlive its
// Worker: what had no answer by then is an AgentLost.
//
// Threads: one at a time.
template <typename T>
class [[nodiscard]] Pending {
  public:
    explicit Pending(std::unique_ptr<detail::PendingSource<T>> source)
        : source_(std::move(source)) {}

    // Whether get() would return at once. Never blocks.
    [[nodiscard]] bool is_ready() { return source_->is_ready(); }
    // The answer, once. Blocks, and throws, as the call of the same name without `async_`.
    T get() { return std::exchange(source_, nullptr)->take(); }

  private:
    std::unique_ptr<detail::PendingSource<T>> source_;
};

}  // namespace ddrun
