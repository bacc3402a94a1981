#include "rendezvous/core/root_cause.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace ddrun::rendezvous {

bool may_be_root(const Cause& cause) {
    return !cause.failure.signalled_by_ddrun && cause.failure.blamed_rank < 0;
}

const Report& root_cause(const std::vector<Report>& reports) {
    assert(!reports.empty());
    const auto order = [](const Report& report) {
        return std::tuple(!may_be_root(report.cause), report.happened, report.cause.node_rank,
                          report.cause.failure.rank);
    };
    return *std::min_element(
        reports.begin(), reports.end(),
        [&](const Report& left, const Report& right) { return order(left) < order(right); });
}

}  // namespace ddrun::rendezvous
