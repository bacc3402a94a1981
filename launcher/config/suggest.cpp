#include "launcher/config/suggest.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ddrun::launcher {
namespace {

constexpr std::size_t longest_compared = 64;

// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
std::size_t slips(std::string_view from, std::string_view to) {
    std::vector<std::size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
    for (std::size_t j = 0; j <= to.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= from.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
            row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
            const bool swapped =
                i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = std::exchange(last, row);
    }
    return last[to.size()];
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word,
                                        const std::vector<std::string_view>& names) {
    if (word.empty() || word.size() > longest_compared) return std::nullopt;
    for (const std::string_view name : names) {
        if (word.size() >= 2 && name.starts_with(word)) return name;
    }
    std::optional<std::string_view> best;
    std::size_t fewest = word.size() / 3 + 1;
    for (const std::string_view name : names) {
        const std::size_t count = slips(word, name);
        if (count < fewest) {
            fewest = count;
            best = name;
        }
    }
    return best;
}

}  // namespace ddrun::launcher
