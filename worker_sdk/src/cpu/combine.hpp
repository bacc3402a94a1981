#pragma once

#include <ddrun/process_group.hpp>

#include <cstddef>
#include <span>

namespace ddrun::detail {

// Combines `count` elements of all `sources` in their order and writes the result to all `sinks`, a
// block of 16 KiB at a time. A sink may be one of the sources, at the same address.
void combine(ElementType type, ReduceOp op, std::span<const std::byte* const> sources,
             std::span<std::byte* const> sinks, std::size_t count);

}  // namespace ddrun::detail
