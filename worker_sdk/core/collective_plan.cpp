#include "worker_sdk/core/collective_plan.hpp"

#include <algorithm>

namespace ddrun::detail {

Slice part_of(std::size_t count, std::size_t parts, std::size_t index, std::size_t granule) {
    const std::size_t granules = (count + granule - 1) / granule;
    const std::size_t each = (granules + parts - 1) / parts * granule;
    const std::size_t first = std::min(count, index * each);
    return {first, std::min(each, count - first)};
}

Pieces::Pieces(std::size_t count, std::size_t longest)
    : count_(count), longest_(std::max<std::size_t>(longest, 1)) {}

std::size_t Pieces::size() const {
    return std::max<std::size_t>(1, (count_ + longest_ - 1) / longest_);
}

Slice Pieces::operator[](std::size_t index) const {
    const std::size_t first = std::min(count_, index * longest_);
    return {first, std::min(longest_, count_ - first)};
}

}  // namespace ddrun::detail
