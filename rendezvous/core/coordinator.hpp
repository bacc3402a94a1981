#pragma once

#include "rendezvous/core/job_rules.hpp"
#include "rendezvous/core/restart_budget.hpp"
#include "rendezvous/core/root_cause.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun::rendezvous {

struct NodeMessage {  // an event: `node` said `message`
    int node = 0;     // connection number given by the shell
    ToCoordinator message;
};
struct NodeAnswer {  // an action: say `message` to `node`
    int node = 0;
    FromCoordinator message;
};

// Decides rounds, restarts, the root cause and the verdict of one job. Not thread-safe; no clock.
// Messages about another round than the current one are ignored, but for trouble with a whole node.
class Coordinator {
  public:
    using Actions = std::vector<NodeAnswer>;

    explicit Coordinator(JobRules rules);

    [[nodiscard]] Actions step(const NodeMessage& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // One line for logs and failing tests.
    [[nodiscard]] std::string describe() const;

  private:
    enum class State {
        forming,      // not all nodes have joined
        running,      // every node was granted the round
        deciding,     // a failure is known; an older one may still be reported
        stopping,     // every node was told to stop; some still have processes of the round
        backing_off,  // nothing of the round is left; the next one is granted later
        over,         // every node was told the verdict
    };
    struct Member {
        Join offer;
        int node_rank = -1;
        int first_rank = 0;
        bool done = false;   // its workers all exited 0
        bool gone = false;   // none of its processes of this round is left
        bool unfit = false;  // it will never say so

        [[nodiscard]] bool finished() const { return done || gone || unfit; }
    };

    void on(int node, const Join& join, TimePoint now);
    void on(int node, const FailureReport& report, TimePoint now);
    void on(int node, const RoundGone& gone, TimePoint now);
    void on(int node, const NodeDone& done, TimePoint now);
    void on(int node, const StepCommitted& step, TimePoint now);
    void on(int node, const Leave& leave, TimePoint now);

    [[nodiscard]] std::string refusal(const Join& join) const;
    void refuse(int node, std::string words);
    void dismiss(int node, const Cause& cause);
    void grant_round(TimePoint now);
    void place_members();

    void consider(const Report& report, TimePoint now);
    void decide(TimePoint now);
    void stop_round(const RestartDecision& decision, TimePoint now);
    void give_up_because(const Cause& cause, TimePoint now);
    void replace_cause(const Cause& cause);
    [[nodiscard]] bool came_with_the_failure(TimePoint now) const;

    void settle(TimePoint now);
    void settle_running(TimePoint now);
    void settle_stopping(TimePoint now);
    void end(Verdict verdict);
    void end_with_cause();

    [[nodiscard]] static std::string_view name_of(State state);
    [[nodiscard]] Member* member_in_round(int node, int round);
    [[nodiscard]] Cause stamped(int node, Cause cause) const;
    template <typename Predicate>
    [[nodiscard]] bool all_members(Predicate predicate) const;
    void say(int node, FromCoordinator message);
    void say_to_all(const FromCoordinator& message);

    JobRules rules_;
    RestartBudget budget_;
    State state_ = State::forming;
    std::map<int, Member> members_;
    int round_ = 0;
    TimePoint round_started_{};
    bool step_committed_ = false;

    std::vector<Report> reports_;  // of this round, while the cause is not decided
    TimePoint first_report_{};     // when the first of them arrived
    TimePoint deadline_{};         // deciding: decide; backing off: grant
    Cause cause_;                  // why the round was stopped
    RestartDecision decision_;     // what follows once it is gone
    Verdict verdict_;

    Actions answers_;  // of the step being made
};

}  // namespace ddrun::rendezvous
