#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ddrun::launcher {

// The name a reader most likely meant: the first that `word` begins, else the one with the fewest
// typing slips (at most a third of the word). None when nothing is near.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      const std::vector<std::string_view>& names);

}  // namespace ddrun::launcher
