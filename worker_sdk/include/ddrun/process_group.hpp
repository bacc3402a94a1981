#pragma once

#include <ddrun/half.hpp>
#include <ddrun/work.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>

namespace ddrun {

namespace detail {
class CallQueue;
}

enum class ReduceOp : std::uint8_t {
    sum,  // integers wrap around
    min,  // a NaN wins
    max,  // a NaN wins
    avg,  // the sum divided by the number of ranks; floating point only
};

enum class ElementType : std::uint8_t {
    float32,
    float64,
    int32,
    int64,
    uint8,
    float16,   // combined as float32 and rounded when written
    bfloat16,  // the same
};

template <typename T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::uint8_t> || std::same_as<T, Float16> || std::same_as<T, BFloat16>;

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

// Collective operations among the ranks of a group: all of the world, or some of it. Every rank of
// the group makes the same calls in the same order; what they called is compared each time, so a
// mistake becomes Desynchronised on every rank, not a hang. Ranks of one node meet in shared
// memory, ranks of different nodes over TCP.
//
// Results are the same bytes on every rank: elements are combined in one fixed order.
//
// Every operation comes twice: as a call that waits, and as `async_...`, which returns a Work. They
// run one after another in the order in which they were made.
//
// Blocks: until the operation is finished on this rank, at most until its timeout. Threads: one
// call at a time; a second thread that waits at the same moment gets Error{invalid_use}. Throws:
// PeerLost within milliseconds of a peer's death or the round's abort; TimedOut naming the ranks
// that did not arrive (a frozen peer); Desynchronised; Error{invalid_use} for shapes that cannot be
// right, before anything is sent. After any of the first three the group is broken for good: its
// data buffers hold unspecified values, and every later call throws at once. After a stop request
// it works as before. Ends with its Worker.
class ProcessGroup {
  public:
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;
    virtual ~ProcessGroup();

    // In the group: 0 .. size() - 1. Errors name ranks of the world.
    [[nodiscard]] virtual int rank() const noexcept = 0;
    [[nodiscard]] virtual int size() const noexcept = 0;

    // `data` of every rank becomes the element-wise combination of all ranks' `data`.
    template <WritableElementRange R>
    void all_reduce(R&& data, ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
        run(all_reduce_call(data, op, options));
    }
    template <WritableElementRange R>
    Work async_all_reduce(R&& data, ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
        return post(all_reduce_call(data, op, options));
    }

    // `data` of every rank becomes `root`'s.
    template <WritableElementRange R>
    void broadcast(R&& data, int root, const CallOptions& options = {}) {
        run(broadcast_call(data, root, options));
    }
    template <WritableElementRange R>
    Work async_broadcast(R&& data, int root, const CallOptions& options = {}) {
        return post(broadcast_call(data, root, options));
    }

    // `output` becomes rank 0's `input`, rank 1's, ...; it is size() times as long as `input`. The
    // two may not overlap, except that `input` may be this rank's own part of `output`.
    template <ElementRange In, WritableElementRange Out>
    requires std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>
    void all_gather(const In& input, Out&& output, const CallOptions& options = {}) {
        run(all_gather_call(input, output, options));
    }
    template <ElementRange In, WritableElementRange Out>
    requires std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>> Work
    async_all_gather(const In& input, Out&& output, const CallOptions& options = {}) {
        return post(all_gather_call(input, output, options));
    }

    // `input`, size() times as long as `output`, is combined over all ranks; each rank gets its
    // part. The two may not overlap, except that `output` may be this rank's own part of `input`.
    template <ElementRange In, WritableElementRange Out>
    requires std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>
    void reduce_scatter(const In& input, Out&& output, ReduceOp op = ReduceOp::sum,
                        const CallOptions& options = {}) {
        run(reduce_scatter_call(input, output, op, options));
    }
    template <ElementRange In, WritableElementRange Out>
    requires std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>> Work
    async_reduce_scatter(const In& input, Out&& output, ReduceOp op = ReduceOp::sum,
                         const CallOptions& options = {}) {
        return post(reduce_scatter_call(input, output, op, options));
    }

    // Returns when every rank has called it.
    void barrier(const CallOptions& options = {}) {
        run([=, this] { do_barrier(options); });
    }
    Work async_barrier(const CallOptions& options = {}) {
        return post([=, this] { do_barrier(options); });
    }

    // Zeroed memory of `count` elements that the other ranks of this node can reach, so collectives
    // on it (or on a part of it) need no copies: the place for gradients and parameters. Aligned to
    // 64 bytes; valid until the Worker ends; cannot be given back. Does not involve the other
    // ranks. Throws Error{invalid_use} beyond WorkerOptions::shared_bytes_per_rank in all.
    template <Element T>
    [[nodiscard]] std::span<T> allocate(std::size_t count) {
        return {static_cast<T*>(do_allocate(count, sizeof(T))), count};
    }

  protected:
    ProcessGroup();
    struct Shape {
        std::size_t count = 0;
        ElementType type = ElementType::float32;
    };

    virtual void do_barrier(const CallOptions& options) = 0;
    virtual void do_all_reduce(void* data, Shape shape, ReduceOp op,
                               const CallOptions& options) = 0;
    virtual void do_broadcast(void* data, Shape shape, int root, const CallOptions& options) = 0;
    virtual void do_all_gather(const void* input, Shape input_shape, void* output,
                               std::size_t output_count, const CallOptions& options) = 0;
    virtual void do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                                   Shape output_shape, ReduceOp op, const CallOptions& options) = 0;
    virtual void* do_allocate(std::size_t count, std::size_t element_bytes) = 0;
    // Every group calls it first in its destructor: calls that have not begun fail, and the one
    // that runs is waited for.
    void end_calls();

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
        if constexpr (std::same_as<T, Float16>) return ElementType::float16;
        if constexpr (std::same_as<T, BFloat16>) return ElementType::bfloat16;
        return ElementType::uint8;
    }
    template <typename R>
    auto all_reduce_call(R& data, ReduceOp op, const CallOptions& options) {
        return [this, to = std::ranges::data(data), shape = shape_of(data), op, options] {
            do_all_reduce(to, shape, op, options);
        };
    }
    template <typename R>
    auto broadcast_call(R& data, int root, const CallOptions& options) {
        return [this, to = std::ranges::data(data), shape = shape_of(data), root, options] {
            do_broadcast(to, shape, root, options);
        };
    }
    template <typename In, typename Out>
    auto all_gather_call(const In& input, Out& output, const CallOptions& options) {
        return [this, from = std::ranges::data(input), shape = shape_of(input),
                to = std::ranges::data(output), count = std::ranges::size(output),
                options] { do_all_gather(from, shape, to, count, options); };
    }
    template <typename In, typename Out>
    auto reduce_scatter_call(const In& input, Out& output, ReduceOp op,
                             const CallOptions& options) {
        return [this, from = std::ranges::data(input), count = std::ranges::size(input),
                to = std::ranges::data(output), shape = shape_of(output), op,
                options] { do_reduce_scatter(from, count, to, shape, op, options); };
    }
    void run(const std::function<void()>& call);
    [[nodiscard]] Work post(std::function<void()> call);

    std::unique_ptr<detail::CallQueue> queue_;
};

}  // namespace ddrun
