#pragma once

#include <span>
#include <string>

namespace ddrun::detail {

// {2}: "rank 2"; {0, 1, 2, 5}: "ranks 0-2 and 5"; {0, 2, 5}: "ranks 0, 2 and 5". `ranks` rise.
[[nodiscard]] std::string rank_list(std::span<const int> ranks);

}  // namespace ddrun::detail
