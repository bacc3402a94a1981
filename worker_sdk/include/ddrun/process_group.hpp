#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>

namespace ddrun {

enum class ReduceOp : std::uint8_t {
    sum,  // integers wrap around
    min,  // a NaN wins
    max,  // a NaN wins
    avg,  // the sum divided by the number of ranks; floating point only
};

enum class ElementType : std::uint8_t { float32, float64, int32, int64, uint8 };

template <typename T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t>;

// A vector, array or span of elements, passed as it is.
template <typename R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::remove_cv_t<std::ranges::range_value_t<R>>>;
template <typename R>
concept WritableElementRange =
    ElementRange<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

struct CallOptions {
    // How long one call may take before it throws TimedOut; nullopt: the group's timeout
    // (WorkerOptions::collective_timeout, 5 minutes unless set).
    std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

// Collective operations among all ranks. Every rank makes the same calls in the same order; what
// they called is compared each time, so a mistake becomes Desynchronised on every rank, not a hang.
//
// Results are the same bytes on every rank: elements are combined in rank order.
//
// Blocks: until the operation is finished on this rank, at most until its timeout. Threads: one
// call at a time; a second thread inside at the same moment gets Error{invalid_use}. Throws:
// PeerLost within milliseconds of a peer's death or the round's abort; TimedOut naming the ranks
// that did not arrive (a frozen peer); Desynchronised; Error{invalid_use} for shapes that cannot be
// right, before anything is sent. After any of the first three the group is broken for good: its
// data buffers hold unspecified values, and every later call throws at once. After a stop request
// it works as before. Ends with its Worker.
class ProcessGroup {
  public:
    ProcessGroup() = default;
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;
    virtual ~ProcessGroup() = default;

    [[nodiscard]] virtual int rank() const noexcept = 0;
    [[nodiscard]] virtual int size() const noexcept = 0;

    // `data` of every rank becomes the element-wise combination of all ranks' `data`.
    template <WritableElementRange R>
    void all_reduce(R&& data, ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
        do_all_reduce(std::ranges::data(data), shape_of(data), op, options);
    }

    // `data` of every rank becomes `root`'s.
    template <WritableElementRange R>
    void broadcast(R&& data, int root, const CallOptions& options = {}) {
        do_broadcast(std::ranges::data(data), shape_of(data), root, options);
    }

    // `output` becomes rank 0's `input`, rank 1's, ...; it is size() times as long as `input`. The
    // two may not overlap, except that `input` may be this rank's own part of `output`.
    template <ElementRange In, WritableElementRange Out>
    requires std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>
    void all_gather(const In& input, Out&& output, const CallOptions& options = {}) {
        do_all_gather(std::ranges::data(input), shape_of(input), std::ranges::data(output),
                      std::ranges::size(output), options);
    }

    // `input`, size() times as long as `output`, is combined over all ranks; each rank gets its
    // part. The two may not overlap, except that `output` may be this rank's own part of `input`.
    template <ElementRange In, WritableElementRange Out>
    requires std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>
    void reduce_scatter(const In& input, Out&& output, ReduceOp op = ReduceOp::sum,
                        const CallOptions& options = {}) {
        do_reduce_scatter(std::ranges::data(input), std::ranges::size(input),
                          std::ranges::data(output), shape_of(output), op, options);
    }

    // Returns when every rank has called it.
    virtual void barrier(const CallOptions& options = {}) = 0;

    // Zeroed memory of `count` elements that the other ranks of this node can reach, so collectives
    // on it (or on a part of it) need no copies: the place for gradients and parameters. Aligned to
    // 64 bytes; valid until the Worker ends; cannot be given back. Does not involve the other
    // ranks. Throws Error{invalid_use} beyond WorkerOptions::shared_bytes_per_rank in all.
    template <Element T>
    [[nodiscard]] std::span<T> allocate(std::size_t count) {
        return {static_cast<T*>(do_allocate(count, sizeof(T))), count};
    }

  protected:
    struct Shape {
        std::size_t count = 0;
        ElementType type = ElementType::float32;
    };

    virtual void do_all_reduce(void* data, Shape shape, ReduceOp op,
                               const CallOptions& options) = 0;
    virtual void do_broadcast(void* data, Shape shape, int root, const CallOptions& options) = 0;
    virtual void do_all_gather(const void* input, Shape input_shape, void* output,
                               std::size_t output_count, const CallOptions& options) = 0;
    virtual void do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                                   Shape output_shape, ReduceOp op, const CallOptions& options) = 0;
    virtual void* do_allocate(std::size_t count, std::size_t element_bytes) = 0;

  private:
    template <typename R>
    static Shape shape_of(const R& range) {
        return {std::ranges::size(range),
                element_type<std::remove_cv_t<std::ranges::range_value_t<R>>>()};
    }
    template <Element T>
    static consteval ElementType element_type() {
        if constexpr (std::same_as<T, float>) return ElementType::float32;
        if constexpr (std::same_as<T, double>) return ElementType::float64;
        if constexpr (std::same_as<T, std::int32_t>) return ElementType::int32;
        if constexpr (std::same_as<T, std::int64_t>) return ElementType::int64;
        return ElementType::uint8;
    }
};

}  // namespace ddrun
