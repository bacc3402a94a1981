#include "worker_sdk/core/words.hpp"

#include <cstddef>
#include <vector>

namespace ddrun::detail {
namespace {

// Runs of three and more shrink to "first-last".
std::vector<std::string> runs_of(std::span<const int> ranks) {
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        if (last - i < 2) last = i;
        runs.push_back(std::to_string(ranks[i]));
        if (last > i) runs.back() += "-" + std::to_string(ranks[last]);
        i = last + 1;
    }
    return runs;
}

}  // namespace

std::string rank_list(std::span<const int> ranks) {
    const auto runs = runs_of(ranks);
    std::string words = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (i > 0) words += i + 1 == runs.size() ? " and " : ", ";
        words += runs[i];
    }
    return words;
}

}  // namespace ddrun::detail
