#pragma once

#include <cstddef>

namespace ddrun::detail {

struct Slice {
    std::size_t first = 0;
    std::size_t count = 0;
    bool operator==(const Slice&) const = default;
};

// The `index`-th of `parts` nearly equal parts of 0..count, cut at multiples of `granule` elements
// (so that no two ranks write one cache line); late parts may be shorter or empty.
[[nodiscard]] Slice part_of(std::size_t count, std::size_t parts, std::size_t index,
                            std::size_t granule);

// A call's elements cut into pieces of at most `longest`. There is always a first piece, if only an
// empty one: the ranks meet over it to compare their calls.
class Pieces {
  public:
    Pieces(std::size_t count, std::size_t longest);
    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] Slice operator[](std::size_t index) const;

  private:
    std::size_t count_;
    std::size_t longest_;
};

}  // namespace ddrun::detail
