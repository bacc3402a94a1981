// What breaks: failures of workers, nodes that leave, are lost or silent; what follows.

#include "rendezvous/core/coordinator.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::rendezvous {
namespace {

bool spoils_the_node(CauseKind kind) {
    return kind == CauseKind::node_unfit || kind == CauseKind::keeper_lost;
}

std::string how(const Cause& cause) {
    const int signal = cause.exit_code - exit_code::signal_base;
    return signal > 0 ? " (" + signal_name(signal) + ")" : "";
}

}  // namespace

// --- workers ------------------------------------------------------------------------------------

void Coordinator::on(int node, const FailureReport& report, TimePoint now) {
    const Member* member = members_.find(node);
    if (state_ == State::over || (member == nullptr && state_ != State::forming)) return;
    if (member == nullptr) return dismiss(node, report.cause);
    const Cause cause = stamped(*member, report.cause);
    const bool about_workers = is_about_workers(cause.kind);
    if (!member->seated) {
        // Its workers' failure is of a round that it is not in any more.
        if (about_workers && state_ != State::forming) return;
        dismiss(node, cause);
        return state_ == State::forming ? form(now) : settle(now);
    }
    if (report.round == round_) note_reason(node);
    // What is wrong with the node itself concerns every round: the report may have crossed a grant.
    if (about_workers && report.round != round_) return;
    if (spoils_the_node(cause.kind)) {
        members_.update(node, [&](Member& spoilt) {
            spoilt.unfit = true;
            spoilt.own_end = cause;
            // Workers die with their keeper.
            if (cause.kind == CauseKind::keeper_lost) spoilt.gone = true;
        });
    }
    if (state_ == State::running || state_ == State::deciding) {
        return consider({cause, now - cause.failure.age, node}, now);
    }
    // The round is being stopped already: workers that fail now are consequences.
    if (!about_workers) {
        if (decision_.restart && spoils_the_node(cause.kind) && can_go_on()) {
            let_go(node);
        } else {
            give_up_because(cause, now);
        }
    }
    settle(now);
}

void Coordinator::consider(const Report& report, TimePoint now) {
    if (state_ == State::running) {
        enter(State::deciding);
        first_report_ = now;
        deadline_ = now + rules_.cause_window;
    }
    reports_.push_back(report);
    // A node reports its own workers in the right order; only other nodes can know an older
    // failure.
    if (grant_.node_count == 1 || rules_.cause_window <= Duration::zero()) return decide(now);
    settle(now);
}

void Coordinator::wait_for_silent_ones() {
    std::string names;
    int named = 0;
    for (const auto& [node, member] : members_) {
        if (!member.seated || member.finished() || !member.silent()) continue;
        if (named++ < 3) names += (named > 1 ? ", " : "") + member.offer.node_name;
    }
    if (named > 3) names += " and " + std::to_string(named - 3) + " more";
    const Notice notice{
        "a failure is known; waiting for " + names + ", which may know an older one", true};
    for (const auto& [node, member] : members_) {
        if (!member.silent()) say(node, notice);
    }
}

void Coordinator::decide(TimePoint now) {
    // The workers of a node that was told to stop end because of that.
    std::erase_if(reports_, [this](const Report& report) {
        const Member* member = members_.find(report.node);
        return member != nullptr && member->own_end && !member->unfit &&
               is_about_workers(report.cause.kind);
    });
    cause_ = root_cause(reports_).cause;
    stop_round(decision_for(now), now);
}

RestartDecision Coordinator::decision_for(TimePoint now) {
    if (cause_.kind == CauseKind::node_left) return form_anew(now);
    const bool spoilt = std::any_of(reports_.begin(), reports_.end(), [](const Report& report) {
        return spoils_the_node(report.cause.kind);
    });
    if (spoilt && !can_go_on()) {
        return {false, false, {}, "no other node takes the place of the one that failed"};
    }
    const RoundLife life = life_until(now);
    if (budget_.was_healthy(life)) {
        formed_anew_ = 0;
        leavers_.clear();
    }
    return budget_.decide(cause_, life);
}

RoundLife Coordinator::life_until(TimePoint now) const {
    return {round_, now - round_started_, step_committed_};
}

void Coordinator::stop_round(const RestartDecision& decision, TimePoint now) {
    decision_ = decision;
    enter(State::stopping);
    say_to_round(stop_message());
    let_go_of_leavers();
    settle(now);
}

StopRound Coordinator::stop_message() const {
    return {
        round_,          cause_,           budget_.used(), rules_.max_restarts, decision_.restart,
        decision_.delay, decision_.why_not};
}

// A restart was decided and will not happen after all.
void Coordinator::give_up_because(const Cause& cause, TimePoint now) {
    if (!decision_.restart) return;
    if (decision_.charged) budget_.take_back();
    cause_ = cause;
    decision_ = {};
    if (state_ != State::stopping) return end_with_cause();
    settle(now);
}

// --- nodes that leave ---------------------------------------------------------------------------

void Coordinator::on(int node, const Leave& leave, TimePoint now) {
    const Member* member = members_.find(node);
    if (member == nullptr) return dismiss(node, leave.cause);
    const Cause cause = stamped(*member, leave.cause);
    if (state_ == State::over) return;
    if (member->seated) {
        note_reason(node);
        return leaves_the_round(node, cause, now);
    }
    news_.add(node, member->offer.node_name + " left" + how(cause), false, now);
    dismiss(node, cause);
    if (state_ == State::forming) form(now);
}

void Coordinator::leaves_the_round(int node, const Cause& cause, TimePoint now) {
    const Member* member = members_.find(node);
    if (member->own_end) return;
    const bool runs = state_ == State::running || state_ == State::deciding;
    if (!runs && !decision_.restart) {
        if (came_with_the_failure(now)) {
            cause_ = cause;
            decision_ = {};
        }
        return;
    }
    members_.update(node, [&](Member& leaver) { leaver.own_end = cause; });
    leavers_.insert(cause.node_name);
    if (!can_go_on() && runs) {
        cause_ = cause;
        return stop_round({}, now);
    }
    if (!can_go_on()) return give_up_because(cause, now);
    if (runs && member->done) {  // its part of this round is done
        ++finished_and_left_;
        dismiss(node, cause);
        return settle(now);
    }
    if (!runs) {
        let_go(node);
        return settle(now);
    }
    Cause left = stamped(*member, {});
    left.kind = CauseKind::node_left;
    left.words = "node " + left.node_name + " left" + how(cause);
    consider({left, now, node}, now);
}

// A scheduler signals ddrun and its workers in one instant; which of the two is seen first is
// chance, and the stop is what happened.
bool Coordinator::came_with_the_failure(TimePoint now) const {
    return cause_.kind == CauseKind::worker_failed && now - first_report_ <= rules_.cause_window;
}

// Whether enough nodes are left, without those that leave or are unfit.
bool Coordinator::can_go_on() const {
    const MemberTable::Tally& tally = members_.tally();
    return tally.stayers + tally.ready >= rules_.least_nodes();
}

void Coordinator::let_go_of_leavers() {
    if (!decision_.restart) return;
    std::vector<int> leavers;
    for (const auto& [node, member] : members_) {
        if (member.own_end) leavers.push_back(node);
    }
    for (int node : leavers) let_go(node);
}

// The others go on without it: it is told its own end as soon as it can do nothing more for the
// round.
void Coordinator::let_go(int node) {
    const Member* member = members_.find(node);
    const bool between =
        state_ == State::stopping || state_ == State::backing_off || state_ == State::short_handed;
    if (!between || !decision_.restart || !member->own_end) return;
    if (!member->gone && !member->unfit) return;
    if (!member->dismissed) {
        const Cause& cause = *member->own_end;
        say(node, Verdict{exit_code_of(cause), true, cause, budget_.used(), {}});
    }
    if (member->gone) return members_.remove(node);
    members_.update(node, [](Member& leaver) { leaver.dismissed = true; });
}

// --- nodes that are silent or lost --------------------------------------------------------------

void Coordinator::on(const NodeSuspect& event, TimePoint now) {
    const Member* member = members_.find(event.node);
    if (member == nullptr || member->silent() == event.suspect) return;
    const std::string name = "node " + member->offer.node_name;
    const bool waits = !member->seated;
    members_.update(event.node, [&](Member& changed) {
        changed.silent_since = event.suspect ? std::optional(now) : std::nullopt;
    });
    if (state_ == State::over) return;
    if (event.suspect) {
        news_.add(event.node, name + " does not answer", true, now);
    } else {
        if (!news_.take_back(event.node)) news_.add(event.node, name + " is back", false, now);
        make_room_for(event.node);
    }
    if (state_ == State::forming) return form(now);
    if (event.suspect) return settle(now);
    if (state_ == State::running && waits) return admit_newcomers(event.node, now);
    // What it had to say follows at once.
    if (state_ == State::deciding) {
        deadline_ = std::max(deadline_.value_or(now), now + rules_.cause_window);
    }
    settle(now);
}

void Coordinator::on(const NodeLost& event, TimePoint now) {
    const Member* found = members_.find(event.node);
    if (found == nullptr) return;
    const Member member = *found;
    members_.remove(event.node);
    if (state_ == State::over) return;
    if (member.seated) {
        fence_ = std::max(fence_, event.fenced_by);
        return lost_from_round(member, event, now);
    }
    if (!member.absent() && (!event.announced || state_ == State::forming)) {
        news_.add(event.node, loss_of(member, event).words, !event.announced, now);
    }
    if (state_ == State::forming) return form(now);
    settle(now);
}

void Coordinator::lost_from_round(const Member& member, const NodeLost& event, TimePoint now) {
    leavers_.insert(member.offer.node_name);
    const Cause cause = loss_of(member, event);
    switch (state_) {
        case State::running:
        case State::deciding:
            if (member.done) ++finished_and_left_;
            if (member.done || member.own_end) return settle(now);
            if (event.announced && !can_go_on()) {
                cause_ = cause;
                first_report_ = now;
                return stop_round({}, now);
            }
            return consider(loss_report(member, cause, now), now);
        case State::stopping:
            if (!member.gone && !member.own_end && !event.announced) {
                lost_while_stopping(member, cause, now);
            }
            return settle(now);
        case State::backing_off:
        case State::short_handed:
            if (!member.own_end) news_.add(member.node, cause.words, true, now);
            not_before_ = std::max(not_before_, fence_);
            return settle(now);
        case State::forming:
        case State::over:
            return;
    }
}

// One stop is charged once, but a group that forms anew for nothing did not expect this.
void Coordinator::lost_while_stopping(const Member& member, const Cause& cause, TimePoint now) {
    news_.add(member.node, cause.words, true, now);
    if (!decision_.restart || decision_.charged) return;
    cause_ = cause;
    decision_ = budget_.decide(cause_, life_until(now));
}

Cause Coordinator::loss_of(const Member& member, const NodeLost& event) {
    Cause cause = stamped(member, {});
    cause.kind = event.announced ? CauseKind::node_left : CauseKind::node_lost;
    cause.words = "node " + cause.node_name + (event.announced ? " left" : " was lost") +
                  (event.words.empty() ? "" : ": " + event.words);
    return cause;
}

// Workers elsewhere notice the death of their peers before the server notices that of the node. But
// what the node itself could still report was before its loss.
Report Coordinator::loss_report(const Member& member, const Cause& cause, TimePoint now) const {
    Report loss{cause, member.silent_since.value_or(now), member.node};
    if (cause.kind == CauseKind::node_lost) loss.happened -= rules_.cause_window;
    for (const Report& other : reports_) {
        if (other.node == member.node) {
            loss.happened = std::max(loss.happened, other.happened + Duration(1));
        }
    }
    return loss;
}

Cause Coordinator::stamped(const Member& member, Cause cause) {
    cause.node_rank = std::max(member.node_rank, 0);
    cause.node_name = member.offer.node_name;
    return cause;
}

}  // namespace ddrun::rendezvous
