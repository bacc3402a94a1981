#pragma once

#include "rendezvous/core/coordinator_events.hpp"
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

// Decides rounds, restarts, the root cause and the verdict of one job. Not thread-safe; no clock.
// Messages about another round than the current one are ignored, but for trouble with a whole node.
class Coordinator {
  public:
    using Actions = std::vector<NodeAnswer>;

    explicit Coordinator(JobRules rules);

    // A job that goes on although its server started empty: adopts round, flags, restarts used, a
    // stop under way and a verdict from what its nodes present. `presented` is not empty and all of
    // one job; more may come as events. What has to be said follows from the first call.
    [[nodiscard]] static Coordinator restore(JobRules rules,
                                             const std::vector<Presented>& presented,
                                             TimePoint now);

    [[nodiscard]] Actions step(const CoordinatorEvent& event, TimePoint now);
    [[nodiscard]] Actions step(const NodeMessage& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    [[nodiscard]] std::string_view state_name() const { return name_of(state_); }
    [[nodiscard]] int round() const { return round_; }  // 0: none was granted yet
    [[nodiscard]] int world_size() const { return grant_.world_size; }
    [[nodiscard]] std::uint64_t digest() const { return grant_.digest; }  // of the round
    [[nodiscard]] int restarts_used() const { return budget_.used(); }
    [[nodiscard]] const JobRules& rules() const { return rules_; }
    [[nodiscard]] bool is_over() const { return state_ == State::over; }
    // A node has finished its part of the running round: newcomers belong to the next run.
    [[nodiscard]] bool is_closing() const;
    // Before this a process of an expelled node may still run; the past: none can.
    [[nodiscard]] TimePoint fenced_by() const { return fence_; }
    [[nodiscard]] bool knows(int node) const { return members_.contains(node); }
    // The round that `node` is in until the next grant; 0: none.
    [[nodiscard]] int round_of(int node) const;
    // Nodes of a restored round that did not come back yet, as absent_node() ids.
    [[nodiscard]] std::vector<int> absent_nodes() const;
    [[nodiscard]] std::vector<MemberStatus> members() const;  // in no order

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
    RoundGranted grant_;
    TimePoint fence_{};
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
