#pragma once

#include "rendezvous/core/coordinator_events.hpp"
#include "rendezvous/core/job_rules.hpp"
#include "rendezvous/core/member_table.hpp"
#include "rendezvous/core/news.hpp"
#include "rendezvous/core/rank_assignment.hpp"
#include "rendezvous/core/restart_budget.hpp"
#include "rendezvous/core/root_cause.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun::rendezvous {

// Decides who takes part, rounds, restarts, the root cause and the verdict of one job. Not
// thread-safe; no clock. Messages about another round than the current one are ignored, but for
// trouble with a whole node. A step costs O(log n), a round O(n log n) for n nodes.
//
// Every node hears the verdict once. A node that leaves, or cannot run workers any more, while the
// job goes on without it hears one of its own.
class Coordinator {
  public:
    using Actions = std::vector<NodeAnswer>;

    explicit Coordinator(JobRules rules);
    // A job that goes on although its server started empty: adopts round, flags, restarts used, a
    // stop under way and a verdict from what its nodes present. `presented` is not empty and all of
    // one job; more may come as events. What has to be said follows from the next call, which is
    // due at once.
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
    // Until then a process of an expelled node may still run; in the past: none does.
    [[nodiscard]] TimePoint fenced_by() const { return fence_; }
    [[nodiscard]] bool knows(int node) const { return members_.contains(node); }
    // The round that `node` is in until the next grant; 0: none.
    [[nodiscard]] int round_of(int node) const;
    // Nodes of a restored round that did not come back yet, as absent_node() ids; one for all,
    // where no node of a round came back.
    [[nodiscard]] std::vector<int> absent_nodes() const;
    [[nodiscard]] int absent_count() const { return members_.tally().absent; }
    [[nodiscard]] std::vector<MemberStatus> members() const;  // by node

    // One line for logs and failing tests.
    [[nodiscard]] std::string describe() const;

  private:
    enum class State {
        forming,       // no round yet: too few nodes, or the last call
        running,       // every node was granted the round
        deciding,      // a failure or a leave is known; an older failure may still be reported
        stopping,      // every node was told to stop; some still have processes of the round
        backing_off,   // nothing of the round is left; the next one is granted later
        short_handed,  // nothing of the round is left, and too few nodes are for the next one
        over,          // every node was told the verdict
    };

    // --- coordinator.cpp: dispatch, ends
    void on(const NodeMessage& event, TimePoint now);
    void on(const NodeSuspect& event, TimePoint now);
    void on(const NodeLost& event, TimePoint now);
    void on(const Presented& event, TimePoint now);
    void on(int node, const Join& join, TimePoint now);
    void on(int node, const FailureReport& report, TimePoint now);
    void on(int node, const RoundGone& gone, TimePoint now);
    void on(int node, const NodeDone& done, TimePoint now);
    void on(int node, const StepCommitted& step, TimePoint now);
    void on(int node, const Leave& leave, TimePoint now);
    void enter(State state);
    void time_is_up(TimePoint now);
    void settle(TimePoint now);
    void settle_running(TimePoint now);
    void settle_deciding(TimePoint now);
    void settle_stopping(TimePoint now);
    void end(Verdict verdict);
    void end_with_cause();

    // --- coordinator_forming.cpp: joining, grants
    [[nodiscard]] std::string refusal(const Join& join) const;
    [[nodiscard]] std::string complete_words() const;
    void refuse(int node, std::string words);
    void dismiss(int node, const Cause& cause);
    void newcomer(int node, TimePoint now);
    void admit_newcomers(std::optional<int> newcomer, TimePoint now);
    void make_room_for(int node);
    void park(int node);
    void form(TimePoint now);
    void give_up_forming();
    void between_rounds(TimePoint now);
    void no_replacement_came();
    void waiting_began(TimePoint now);
    void report_progress(TimePoint now);
    [[nodiscard]] std::string progress_words(TimePoint now) const;
    [[nodiscard]] std::string names_of_members() const;
    void grant_round(TimePoint now);
    [[nodiscard]] std::vector<int> chosen_of_waiting(int room, bool resumed_only = false) const;
    [[nodiscard]] std::vector<Placement> placements() const;
    void take_places(const std::vector<Placement>& placements);
    void say_grant(int node);

    // --- coordinator_failures.cpp: failures, leaves and losses
    void consider(const Report& report, TimePoint now);
    void decide(TimePoint now);
    [[nodiscard]] RestartDecision decision_for(TimePoint now);
    [[nodiscard]] RestartDecision form_anew(TimePoint now);
    void stop_round(const RestartDecision& decision, TimePoint now);
    void let_go_of_leavers();
    void let_go(int node);
    void give_up_because(const Cause& cause, TimePoint now);
    void leaves_the_round(int node, const Cause& cause, TimePoint now);
    void lost_from_round(const Member& member, const NodeLost& event, TimePoint now);
    void lost_while_stopping(const Member& member, const Cause& cause, TimePoint now);
    void wait_for_silent_ones();
    [[nodiscard]] bool came_with_the_failure(TimePoint now) const;
    [[nodiscard]] bool can_go_on() const;
    [[nodiscard]] RoundLife life_until(TimePoint now) const;
    [[nodiscard]] static Cause loss_of(const Member& member, const NodeLost& event);
    [[nodiscard]] static Cause stamped(const Member& member, Cause cause);
    [[nodiscard]] Report loss_report(const Member& member, const Cause& cause, TimePoint now) const;

    // --- coordinator_recovery.cpp: a server that started empty
    void expect_others();
    void adopt_round(const RoundGranted& grant, TimePoint now);
    void adopt_verdict(const Presented& event);
    void adopt_stop(const StopRound& stop, int presenter, TimePoint now);
    void take_seat_again(const Presented& event, TimePoint now);
    void wait_again(const Presented& event);
    void hand_out_missed_grants();
    void note_reason(int node);

    [[nodiscard]] static std::string_view name_of(State state);
    [[nodiscard]] std::string_view state_of(const Member& member) const;
    [[nodiscard]] const Member* member_in_round(int node, int round) const;
    [[nodiscard]] std::uint64_t digest_of(const std::vector<Placement>& placements) const;
    [[nodiscard]] StopRound stop_message() const;
    void say(int node, FromCoordinator message);
    void say_to_round(const FromCoordinator& message);
    void say_to_all(const FromCoordinator& message);
    void tell_news(TimePoint now);

    JobRules rules_;
    RestartBudget budget_;
    State state_ = State::forming;
    MemberTable members_;
    int round_ = 0;
    RoundGranted grant_;  // of the round; without what differs from node to node
    TimePoint round_started_{};
    bool step_committed_ = false;
    int finished_and_left_ = 0;  // nodes of the round that left or were lost when they were done
    TimePoint fence_{};          // processes of expelled nodes may run until then

    std::optional<TimePoint> deadline_;        // what the state waits for
    std::optional<TimePoint> progress_at_;     // forming, short_handed: the next line for people
    std::optional<TimePoint> admit_at_;        // running: newcomers wait until then
    std::optional<TimePoint> waiting_since_;   // forming, short_handed
    std::optional<TimePoint> last_call_ends_;  // forming
    TimePoint not_before_{};                   // between rounds: backoff and fence

    std::vector<Report> reports_;  // of this round, while the cause is not decided
    TimePoint first_report_{};     // when the first of them arrived
    Cause cause_;                  // why the round was stopped
    RestartDecision decision_;     // what follows once it is gone
    Verdict verdict_;

    int formed_anew_ = 0;            // in a row, without a healthy round
    std::set<std::string> leavers_;  // their names, since the last healthy round
    News news_;

    Actions answers_;  // of the step being made
};

}  // namespace ddrun::rendezvous
