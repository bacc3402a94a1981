#pragma once

#include <ddrun/process_group.hpp>

#include <cstddef>
#include <span>

namespace ddrun::detail {

// Combines `count` elements of all `sources` in their order and writes the result to all `sinks`, a
// block of 16 KiB at a time. A sink may be one of the sources, at the same address. Sixteen-bit
// numbers are combined as float and rounded once.
void combine(ElementType type, ReduceOp op, std::span<const std::byte* const> sources,
             std::span<std::byte* const> sinks, std::size_t count);

// `into` becomes `into` and `from` combined, in this order, element by element; avg adds.
void fold_in(ElementType type, ReduceOp op, std::byte* into, const std::byte* from,
             std::size_t count);
// Ends an average of `ranks` sums.
void divide_by(ElementType type, std::byte* values, std::size_t count, std::size_t ranks);

}  // namespace ddrun::detail
