// A server that started empty learns its job from the nodes that come back.

#include "rendezvous/core/coordinator.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::rendezvous {

Coordinator Coordinator::restore(JobRules rules, const std::vector<Presented>& presented,
                                 TimePoint now) {
    Coordinator coordinator(std::move(rules));
    std::vector<const Presented*> latest_first;
    for (const Presented& event : presented) latest_first.push_back(&event);
    const auto round_of = [](const Presented* event) { return event->standing.grant.round; };
    std::stable_sort(latest_first.begin(), latest_first.end(),
                     [&](const auto* a, const auto* b) { return round_of(a) > round_of(b); });
    if (round_of(latest_first.front()) == 0) coordinator.expect_others();
    for (const Presented* event : latest_first) coordinator.on(*event, now);
    return coordinator;
}

// Only nodes without a round came back; others may run one, and are on their way.
void Coordinator::expect_others() {
    Join unknown;
    unknown.node_name = "of a round";
    members_.add(absent_node(0), unknown);
    members_.update(absent_node(0), [](Member& member) { member.silent_since = TimePoint{}; });
}

// Nodes come in any order; each may know less than the others, never something else.
void Coordinator::on(const Presented& event, TimePoint now) {
    if (members_.contains(event.node)) return;
    const Standing& standing = event.standing;
    budget_.adopt(standing.restarts_used);
    if (state_ != State::over && standing.verdict) adopt_verdict(event);
    if (state_ == State::over) {
        if (!standing.verdict) say(event.node, verdict_);
        return;
    }
    const int round = standing.grant.round;
    if (round == 0 && round_ == 0) {
        on(event.node, event.offer, now);
        if (members_.contains(event.node)) {
            members_.update(event.node, [](Member& member) { member.resumed = true; });
        }
        return;
    }
    if (round > round_) adopt_round(standing.grant, now);
    if (round == round_) {
        take_seat_again(event, now);
    } else {
        wait_again(event);
    }
    hand_out_missed_grants();
    make_room_for(event.node);
    settle(now);
}

// The verdict was said to every node; this one heard it.
void Coordinator::adopt_verdict(const Presented& event) {
    budget_.adopt(event.standing.verdict->restarts_used);
    round_ = std::max(round_, event.standing.grant.round);
    end(*event.standing.verdict);
}

// Whoever came back before was still without this grant: everything of its last round was gone.
void Coordinator::adopt_round(const RoundGranted& grant, TimePoint now) {
    enter(State::running);
    reports_.clear();
    finished_and_left_ = 0;
    round_started_ = now;
    for (int node : absent_nodes()) members_.remove(node);
    members_.update_all([](Member& member) {
        member.seated = member.done = member.gone = false;
        member.parked = true;
    });
    round_ = grant.round;
    grant_ = grant;
    grant_.node_rank = grant_.first_rank = 0;
    const int seats = std::min(grant.node_count, rules_.nodes);
    for (int seat = 0; seat < seats; ++seat) {
        Join unknown;
        unknown.node_name = "of node rank " + std::to_string(seat);
        members_.add(absent_node(seat), unknown);
        members_.update(absent_node(seat), [&](Member& member) {
            member.seated = true;
            member.node_rank = seat;
            member.silent_since = now;
        });
    }
}

void Coordinator::take_seat_again(const Presented& event, TimePoint now) {
    const Standing& standing = event.standing;
    const bool knows_of_a_stop = standing.stop && standing.stop->round == round_;
    const bool is_stopped = knows_of_a_stop || state_ == State::stopping;
    members_.remove(absent_node(standing.grant.node_rank));
    members_.add(event.node, event.offer);
    members_.update(event.node, [&](Member& member) {
        member.seated = true;
        member.node_rank = standing.grant.node_rank;
        member.first_rank = standing.grant.first_rank;
        member.done = standing.done;
        member.resumed = true;
        member.gone = standing.gone && (is_stopped || standing.done);
        member.owes_a_reason = standing.gone && !member.gone;
    });
    if (standing.healthy) step_committed_ = true;
    if (state_ == State::stopping) {
        if (!knows_of_a_stop) say(event.node, stop_message());
    } else if (knows_of_a_stop) {
        adopt_stop(*standing.stop, event.node, now);
    }
}

void Coordinator::adopt_stop(const StopRound& stop, int presenter, TimePoint now) {
    const bool is_free =
        stop.cause.kind == CauseKind::membership || stop.cause.kind == CauseKind::node_left;
    budget_.adopt(stop.restarts_used);
    cause_ = stop.cause;
    decision_ = {stop.will_restart, stop.will_restart && !is_free, stop.restart_delay,
                 stop.why_no_restart};
    first_report_ = now;
    enter(State::stopping);
    members_.update_all([](Member& member) {
        if (std::exchange(member.owes_a_reason, false)) member.gone = true;
    });
    for (const auto& [node, member] : members_) {
        if (member.seated && !member.absent() && node != presenter) say(node, stop);
    }
}

// A spare, or a node that the last grant did not reach.
void Coordinator::wait_again(const Presented& event) {
    members_.add(event.node, event.offer);
    members_.update(event.node, [&](Member& member) {
        const RoundGranted& last = event.standing.grant;
        member.node_rank = last.round > 0 ? last.node_rank : -1;
        member.parked = member.resumed = true;
    });
}

// A node that ended its round before it was stopped says why, once it may talk. Whoever hears that
// it is gone must not think that it never will.
void Coordinator::note_reason(int node) {
    members_.update(node, [](Member& member) {
        if (std::exchange(member.owes_a_reason, false)) member.gone = true;
    });
}

// The old server may have ended between two messages of one grant. Whether those who wait are those
// who are missing, and where they sit, the digest of the round tells.
void Coordinator::hand_out_missed_grants() {
    const int absent = absent_count();
    if (state_ != State::running || absent == 0 || members_.tally().ready < absent) return;
    const std::vector<int> chosen = chosen_of_waiting(absent, true);
    MemberTable complete = members_;
    for (int node : absent_nodes()) complete.remove(node);
    for (int node : chosen) complete.update(node, [](Member& member) { member.seated = true; });
    std::swap(complete, members_);
    const std::vector<Placement> places = placements();
    if (digest_of(places) != grant_.digest) return std::swap(complete, members_);
    for (const Placement& place : places) {
        members_.update(place.node, [&](Member& member) {
            member.node_rank = place.node_rank;
            member.first_rank = place.first_rank;
        });
    }
    for (int node : chosen) say_grant(node);
}

std::vector<int> Coordinator::absent_nodes() const {
    std::vector<int> absent;
    for (const auto& [node, member] : members_) {
        if (!member.absent()) break;  // in order of `node`
        absent.push_back(node);
    }
    return absent;
}

}  // namespace ddrun::rendezvous
