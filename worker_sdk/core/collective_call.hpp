#pragma once

#include <ddrun/process_group.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ddrun::detail {

enum class Operation : std::uint8_t { barrier, all_reduce, broadcast, all_gather, reduce_scatter };

// What one rank calls. Ranks compare these before any data is touched. Plain bytes, laid out the
// same in every process of a node: it lies in shared memory.
struct Call {
    std::uint64_t sequence = 0;  // of the group's calls, from 1
    std::uint64_t count = 0;     // elements: of each rank's part for all_gather and reduce_scatter
    std::int32_t root = 0;       // broadcast
    Operation operation = Operation::barrier;
    ElementType type = ElementType::uint8;
    ReduceOp reduce = ReduceOp::sum;  // all_reduce, reduce_scatter
    std::uint8_t unused = 0;
    bool operator==(const Call&) const = default;
};

[[nodiscard]] std::size_t bytes_of(ElementType type);

// "all_reduce 17 (sum of 1024 float32)"; before the first call (sequence 0) the group is made.
[[nodiscard]] std::string describe(const Call& call);

// One sentence that says who called what, the same on every rank; nullopt: all calls are equal.
// `ranks[i]`, a rank of the world, called `calls[i]`.
[[nodiscard]] std::optional<std::string> disagreement(std::span<const Call> calls,
                                                      std::span<const int> ranks);

// What is wrong with a call by itself, or nullopt.
[[nodiscard]] std::optional<std::string> misuse(const Call& call, int size);

// The longer buffer of all_gather and reduce_scatter must have call.count elements for each rank:
// what is wrong with `given` elements, or nullopt.
[[nodiscard]] std::optional<std::string> misfit(const Call& call, std::size_t given, int size);

}  // namespace ddrun::detail
