#include "rendezvous/core/coordinator.hpp"

#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace ddrun::rendezvous {

Coordinator::Coordinator(JobRules rules) : rules_(rules), budget_(std::move(rules)) {}

Coordinator::Actions Coordinator::step(const CoordinatorEvent& event, TimePoint now) {
    std::visit([&](const auto& happened) { on(happened, now); }, event);
    return std::exchange(answers_, {});
}

Coordinator::Actions Coordinator::step(const NodeMessage& event, TimePoint now) {
    on(event, now);
    return std::exchange(answers_, {});
}

void Coordinator::on(const NodeMessage& event, TimePoint now) {
    std::visit([&](const auto& message) { on(event.node, message, now); }, event.message);
}

// --- time ---------------------------------------------------------------------------------------

Coordinator::Actions Coordinator::advance_to(TimePoint now) {
    const auto is_due = [now](const std::optional<TimePoint>& time) {
        return time && *time <= now;
    };
    if (is_due(news_.due())) tell_news(now);
    if (is_due(progress_at_)) report_progress(now);
    if (is_due(admit_at_)) admit_newcomers(std::nullopt, now);
    if (is_due(deadline_)) time_is_up(now);
    return std::exchange(answers_, {});
}

std::optional<TimePoint> Coordinator::next_deadline() const {
    if (!answers_.empty()) return TimePoint::min();  // restored
    std::optional<TimePoint> first = deadline_;
    for (const auto& other : {progress_at_, admit_at_, news_.due()}) {
        if (other && (!first || *other < *first)) first = other;
    }
    return first;
}

void Coordinator::enter(State state) {
    state_ = state;
    deadline_.reset();
    progress_at_.reset();
    admit_at_.reset();
    waiting_since_.reset();
    last_call_ends_.reset();
}

void Coordinator::time_is_up(TimePoint now) {
    deadline_.reset();
    switch (state_) {
        case State::forming:
            if (members_.tally().ready >= rules_.least_nodes()) return grant_round(now);
            return give_up_forming();
        case State::deciding:
            if (members_.tally().silent_witnesses == 0) return decide(now);
            return wait_for_silent_ones();
        case State::backing_off:
            return between_rounds(now);
        case State::short_handed:
            return no_replacement_came();
        case State::running:
        case State::stopping:
        case State::over:
            return;
    }
}

// --- ends ---------------------------------------------------------------------------------------

void Coordinator::on(int node, const RoundGone& gone, TimePoint now) {
    if (member_in_round(node, gone.round) == nullptr) return;
    members_.update(node, [](Member& member) { member.gone = true; });
    let_go(node);
    settle(now);
}

void Coordinator::on(int node, const NodeDone& done, TimePoint now) {
    if (member_in_round(node, done.round) == nullptr) return;
    members_.update(node, [](Member& member) { member.done = true; });
    settle(now);
}

void Coordinator::on(int node, const StepCommitted& step, TimePoint now) {
    if (member_in_round(node, step.round) == nullptr) return;
    step_committed_ = true;
    if (admit_at_) admit_newcomers(std::nullopt, now);
}

void Coordinator::settle(TimePoint now) {
    switch (state_) {
        case State::running:
            return settle_running(now);
        case State::deciding:
            return settle_deciding(now);
        case State::stopping:
            return settle_stopping(now);
        case State::backing_off:
        case State::short_handed:
            return between_rounds(now);
        case State::forming:
        case State::over:
            return;
    }
}

void Coordinator::settle_running(TimePoint now) {
    if (members_.tally().unfinished > 0) return;
    if (members_.tally().not_done == 0) {
        Verdict success;
        success.restarts_used = budget_.used();
        return end(success);
    }
    Cause cause;
    cause.exit_code = exit_code::internal_error;
    cause.words = "a node ended its round without saying why";
    consider({cause, now}, now);
}

void Coordinator::settle_deciding(TimePoint now) {
    const bool nobody_can_report = members_.tally().unfinished == 0;
    const bool waited_for_silent_ones = !deadline_ && members_.tally().silent_witnesses == 0;
    if (nobody_can_report || waited_for_silent_ones) decide(now);
}

void Coordinator::settle_stopping(TimePoint now) {
    if (!decision_.restart) {
        if (members_.tally().unfinished == 0) end_with_cause();
        return;
    }
    if (members_.tally().not_gone > 0) return;
    not_before_ = std::max(now + decision_.delay, fence_);
    enter(State::backing_off);
    between_rounds(now);
}

void Coordinator::end_with_cause() {
    end(Verdict{exit_code_of(cause_), true, cause_, budget_.used(), decision_.why_not});
}

void Coordinator::end(Verdict verdict) {
    enter(State::over);
    verdict_ = std::move(verdict);
    news_ = {};
    say_to_all(verdict_);
}

// --- small things -------------------------------------------------------------------------------

const Member* Coordinator::member_in_round(int node, int round) const {
    const Member* member = members_.find(node);
    return member != nullptr && member->seated && round == round_ ? member : nullptr;
}

void Coordinator::say(int node, FromCoordinator message) {
    answers_.push_back({node, std::move(message)});
}

void Coordinator::say_to_round(const FromCoordinator& message) {
    for (const auto& [node, member] : members_) {
        if (member.seated && !member.dismissed && !member.absent()) say(node, message);
    }
}

void Coordinator::say_to_all(const FromCoordinator& message) {
    for (const auto& [node, member] : members_) {
        if (!member.dismissed && !member.absent()) say(node, message);
    }
}

// Silent ones will hear how it ended, which is enough.
void Coordinator::tell_news(TimePoint now) {
    const Notice notice = news_.take(now, members_.size());
    for (const auto& [node, member] : members_) {
        if (!member.dismissed && !member.silent()) say(node, notice);
    }
}

}  // namespace ddrun::rendezvous
