#pragma once

#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::rendezvous {

// What the job allows; the same on all nodes.
struct JobRules {
    int nodes = 1;
    int max_restarts = 0;                      // charged per failure, job-wide
    std::vector<int> no_restart_on;            // worker exit codes that end the job at once
    int crash_loop = 0;                        // K identical failures before `minimum_uptime`; 0: off
    Duration minimum_uptime = std::chrono::seconds(10);  // a round that lived this long resets the backoff
    Duration backoff_first = std::chrono::seconds(1);    // delays: 0, first, 2 first, 4 first ... limit
    Duration backoff_limit = std::chrono::seconds(30);
    Duration cause_window = std::chrono::milliseconds(200);  // wait for older reports of other nodes
};

struct NodeMessage {   // an event: `node` said `message`
    int node = 0;      // connection number given by the shell
    ToCoordinator message;
};
struct NodeAnswer {    // an action: say `message` to `node`
    int node = 0;
    FromCoordinator message;
};

// Decides rounds, restarts, the root cause and the verdict of one job. Not thread-safe; no clock.
// States: forming -> running -> stopping -> (backing off -> running | over).
class Coordinator {
  public:
    using Actions = std::vector<NodeAnswer>;

    explicit Coordinator(JobRules rules);

    [[nodiscard]] Actions step(const NodeMessage& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // One line for logs and failing tests.
    [[nodiscard]] std::string describe() const;
};

}  // namespace ddrun::rendezvous
