#pragma once

#include "worker_sdk/core/collective_call.hpp"

#include <ddrun/process_group.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace ddrun::detail {

// A world of one: every collective is a copy at most, and makes the same demands as a larger group,
// so that a program which runs alone also runs on many.
class SoloGroup final : public ProcessGroup {
  public:
    explicit SoloGroup(std::size_t heap_bytes) : heap_left_(heap_bytes) {}
    ~SoloGroup() override { end_calls(); }

    [[nodiscard]] int rank() const noexcept override { return 0; }
    [[nodiscard]] int size() const noexcept override { return 1; }
    void* do_allocate(std::size_t count, std::size_t element_bytes) override;

  private:
    void do_barrier(const CallOptions&) override {}
    void do_all_reduce(void* data, Shape shape, ReduceOp op, const CallOptions& options) override;
    void do_broadcast(void* data, Shape shape, int root, const CallOptions& options) override;
    void do_all_gather(const void* input, Shape input_shape, void* output, std::size_t output_count,
                       const CallOptions& options) override;
    void do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                           Shape output_shape, ReduceOp op, const CallOptions& options) override;

    struct Free {
        void operator()(void* memory) const;
    };
    std::size_t heap_left_;
    std::vector<std::unique_ptr<void, Free>> heap_;
};

}  // namespace ddrun::detail
