#pragma once

#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <vector>

namespace ddrun::rendezvous {

struct Report {
    Cause cause;
    TimePoint happened{};  // arrival at the coordinator - age, on the coordinator's clock
    int node = 0;
};

// False for a worker that ddrun signalled or that ended because of another rank: a consequence, not
// a cause.
[[nodiscard]] bool may_be_root(const Cause& cause);

// The oldest report that may be a root; the oldest of all where none may. Reports of one instant go
// by node rank, then rank, so that every arrival order gives the same answer. `reports` is not
// empty.
[[nodiscard]] const Report& root_cause(const std::vector<Report>& reports);

}  // namespace ddrun::rendezvous
