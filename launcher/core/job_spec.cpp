#include "launcher/core/job_spec.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

bool holds(const RankRange& range, int rank) {
    return range.first <= rank && rank <= range.last;
}

}  // namespace

Streams StreamMap::for_rank(int local_rank) const {
    const auto last = std::find_if(ranges.rbegin(), ranges.rend(), [&](const auto& entry) {
        return holds(entry.first, local_rank);
    });
    return last == ranges.rend() ? otherwise : last->second;
}

bool RankSet::contains(int rank) const {
    return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const RankRange& range) {
               return holds(range, rank);
           });
}

}  // namespace ddrun::launcher
