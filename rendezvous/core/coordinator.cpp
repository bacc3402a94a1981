#include "rendezvous/core/coordinator.hpp"

#include "rendezvous/core/rank_assignment.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace ddrun::rendezvous {

Coordinator::Coordinator(JobRules rules) : rules_(rules), budget_(std::move(rules)) {}

Coordinator::Actions Coordinator::step(const NodeMessage& event, TimePoint now) {
    std::visit([&](const auto& message) { on(event.node, message, now); }, event.message);
    return std::exchange(answers_, {});
}

Coordinator::Actions Coordinator::step(const CoordinatorEvent& event, TimePoint now) {
    if (const auto* message = std::get_if<NodeMessage>(&event)) return step(*message, now);
    return {};
}

Coordinator Coordinator::restore(JobRules rules, const std::vector<Presented>&, TimePoint) {
    return Coordinator(std::move(rules));
}

bool Coordinator::is_closing() const {
    return state_ == State::running && !all_members([](const Member& m) { return !m.done; });
}

int Coordinator::round_of(int node) const {
    return members_.contains(node) ? round_ : 0;
}

std::vector<int> Coordinator::absent_nodes() const {
    return {};
}

std::vector<MemberStatus> Coordinator::members() const {
    return {};
}

Coordinator::Actions Coordinator::advance_to(TimePoint now) {
    const std::optional<TimePoint> deadline = next_deadline();
    if (deadline && *deadline <= now) {
        if (state_ == State::deciding) {
            decide(now);
        } else {
            grant_round(now);
        }
    }
    return std::exchange(answers_, {});
}

std::optional<TimePoint> Coordinator::next_deadline() const {
    const bool waiting = state_ == State::deciding || state_ == State::backing_off;
    return waiting ? std::optional(deadline_) : std::nullopt;
}

// --- joining ------------------------------------------------------------------------------------

void Coordinator::on(int node, const Join& join, TimePoint now) {
    if (state_ == State::over) return say(node, verdict_);
    if (members_.contains(node)) return;
    if (std::string words = refusal(join); !words.empty()) return refuse(node, std::move(words));
    members_[node].offer = join;
    if (static_cast<int>(members_.size()) < rules_.nodes) return;
    place_members();
    grant_round(now);
}

std::string Coordinator::refusal(const Join& join) const {
    const std::string size = std::to_string(rules_.nodes);
    if (state_ != State::forming) return "the group of " + size + " nodes is complete";
    const int wish = join.wished_node_rank;
    const std::string wished = "node rank " + std::to_string(wish);
    if (wish >= rules_.nodes) return wished + " does not exist in a group of " + size + " nodes";
    if (join.slots < 1) return "a node without slots cannot take part";
    for (const auto& [other, member] : members_) {
        if (wish >= 0 && member.offer.wished_node_rank == wish) {
            return wished + " is already held by " + member.offer.node_name;
        }
    }
    return {};
}

void Coordinator::refuse(int node, std::string words) {
    Cause cause;
    cause.kind = CauseKind::never_formed;
    cause.words = std::move(words);
    dismiss(node, cause);
}

// Ends the job for one node that is in no round; the others form without it.
void Coordinator::dismiss(int node, const Cause& cause) {
    members_.erase(node);
    say(node, Verdict{exit_code_of(cause), true, cause, budget_.used(), {}});
}

void Coordinator::place_members() {
    std::vector<RankOffer> offers;
    for (const auto& [node, member] : members_) {
        const Join& offer = member.offer;
        offers.push_back({node, offer.slots, member.node_rank, offer.wished_node_rank,
                          offer.address, offer.node_name});
    }
    for (const Placement& placement : assign_ranks(std::move(offers))) {
        members_[placement.node].node_rank = placement.node_rank;
        members_[placement.node].first_rank = placement.first_rank;
    }
}

void Coordinator::grant_round(TimePoint now) {
    state_ = State::running;
    round_started_ = now;
    step_committed_ = false;
    reports_.clear();
    RoundGranted grant;
    grant.round = ++round_;
    grant.restart_count = round_ - 1;
    grant.node_count = static_cast<int>(members_.size());
    grant.world_size = 0;
    for (auto& [node, member] : members_) {
        member.done = member.gone = false;
        grant.world_size += member.offer.slots;
        if (member.node_rank != 0) continue;
        grant.master_addr = member.offer.address;
        grant.master_port = member.offer.port;
    }
    for (const auto& [node, member] : members_) {
        grant.node_rank = member.node_rank;
        grant.first_rank = member.first_rank;
        say(node, grant);
    }
}

// --- failures -----------------------------------------------------------------------------------

void Coordinator::on(int node, const FailureReport& report, TimePoint now) {
    const Cause cause = stamped(node, report.cause);
    if (state_ == State::forming) return dismiss(node, cause);
    // What is wrong with the node itself concerns every round: the report may have crossed a grant.
    const int round = is_about_workers(cause.kind) ? report.round : round_;
    Member* member = member_in_round(node, round);
    if (member == nullptr || state_ == State::over) return;
    // Where nobody can clear the node any more, waiting for its RoundGone would be for ever.
    if (cause.kind == CauseKind::node_unfit || cause.kind == CauseKind::keeper_lost) {
        member->unfit = true;
    }
    if (state_ == State::running || state_ == State::deciding) {
        return consider({cause, now - cause.failure.age}, now);
    }
    // The round is being stopped already: workers that fail now are consequences.
    if (!is_about_workers(cause.kind)) give_up_because(cause, now);
    settle(now);
}

void Coordinator::consider(const Report& report, TimePoint now) {
    if (state_ == State::running) {
        first_report_ = now;
        deadline_ = now + rules_.cause_window;
        state_ = State::deciding;
    }
    reports_.push_back(report);
    // A node reports its own workers in the right order; only other nodes can know an older
    // failure.
    const bool nobody_else = members_.size() == 1;
    if (nobody_else || rules_.cause_window <= Duration::zero()) return decide(now);
    settle(now);
}

void Coordinator::decide(TimePoint now) {
    cause_ = root_cause(reports_).cause;
    stop_round(budget_.decide(cause_, {round_, now - round_started_, step_committed_}), now);
}

void Coordinator::stop_round(const RestartDecision& decision, TimePoint now) {
    decision_ = decision;
    state_ = State::stopping;
    say_to_all(StopRound{round_, cause_, budget_.used(), rules_.max_restarts, decision.restart,
                         decision.delay, decision.why_not});
    settle(now);
}

// A restart was decided and will not happen after all.
void Coordinator::give_up_because(const Cause& cause, TimePoint now) {
    if (!decision_.restart) return;
    budget_.take_back();
    replace_cause(cause);
    if (state_ == State::backing_off) return end_with_cause();
    settle(now);
}

void Coordinator::replace_cause(const Cause& cause) {
    cause_ = cause;
    decision_ = {};
}

void Coordinator::on(int node, const Leave& leave, TimePoint now) {
    const Cause cause = stamped(node, leave.cause);
    if (!members_.contains(node)) return dismiss(node, cause);
    switch (state_) {
        case State::forming:
            return dismiss(node, cause);
        case State::running:
        case State::deciding:
            cause_ = cause;
            return stop_round({}, now);
        case State::stopping:
        case State::backing_off:
            if (decision_.restart) return give_up_because(cause, now);
            if (came_with_the_failure(now)) replace_cause(cause);
            return;
        case State::over:
            return;
    }
}

// A scheduler signals ddrun and its workers in one instant; which of the two is seen first is
// chance, and the stop is what happened.
bool Coordinator::came_with_the_failure(TimePoint now) const {
    return cause_.kind == CauseKind::worker_failed && now - first_report_ <= rules_.cause_window;
}

// --- ends ---------------------------------------------------------------------------------------

void Coordinator::on(int node, const RoundGone& gone, TimePoint now) {
    if (Member* member = member_in_round(node, gone.round)) member->gone = true;
    settle(now);
}

void Coordinator::on(int node, const NodeDone& done, TimePoint now) {
    if (Member* member = member_in_round(node, done.round)) member->done = true;
    settle(now);
}

void Coordinator::on(int node, const StepCommitted& step, TimePoint) {
    if (member_in_round(node, step.round) != nullptr) step_committed_ = true;
}

void Coordinator::settle(TimePoint now) {
    const bool finished = all_members([](const Member& member) { return member.finished(); });
    if (!finished) return;
    switch (state_) {
        case State::running:
            return settle_running(now);
        case State::deciding:  // nobody is left who could report
            return decide(now);
        case State::stopping:
            return settle_stopping(now);
        case State::forming:
        case State::backing_off:
        case State::over:
            return;
    }
}

void Coordinator::settle_running(TimePoint now) {
    if (all_members([](const Member& member) { return member.done; })) {
        Verdict success;
        success.restarts_used = budget_.used();
        return end(success);
    }
    Cause cause;
    cause.exit_code = exit_code::internal_error;
    cause.words = "a node ended its round without saying why";
    consider({cause, now}, now);
}

void Coordinator::settle_stopping(TimePoint now) {
    if (!decision_.restart) return end_with_cause();
    if (!all_members([](const Member& member) { return member.gone; })) return;
    state_ = State::backing_off;
    deadline_ = now + decision_.delay;
    if (decision_.delay <= Duration::zero()) grant_round(now);
}

void Coordinator::end_with_cause() {
    end(Verdict{exit_code_of(cause_), true, cause_, budget_.used(), decision_.why_not});
}

void Coordinator::end(Verdict verdict) {
    state_ = State::over;
    verdict_ = std::move(verdict);
    say_to_all(verdict_);
}

std::string Coordinator::describe() const {
    std::string line = "round " + std::to_string(round_) + " " + std::string(name_of(state_)) +
                       ", restarts " + std::to_string(budget_.used()) + "/" +
                       std::to_string(rules_.max_restarts);
    for (const auto& [node, member] : members_) {
        line += ", " + member.offer.node_name;
        if (member.done) line += " done";
        if (member.gone) line += " gone";
        if (member.unfit) line += " unfit";
    }
    return line;
}

std::string_view Coordinator::name_of(State state) {
    switch (state) {
        case State::forming:
            return "forming";
        case State::running:
            return "running";
        case State::deciding:
            return "deciding";
        case State::stopping:
            return "stopping";
        case State::backing_off:
            return "backing off";
        case State::over:
            return "over";
    }
    return "?";
}

// --- small things -------------------------------------------------------------------------------

Coordinator::Member* Coordinator::member_in_round(int node, int round) {
    const auto found = members_.find(node);
    return found != members_.end() && round == round_ ? &found->second : nullptr;
}

Cause Coordinator::stamped(int node, Cause cause) const {
    const auto found = members_.find(node);
    if (found == members_.end()) return cause;
    cause.node_rank = std::max(found->second.node_rank, 0);
    cause.node_name = found->second.offer.node_name;
    return cause;
}

template <typename Predicate>
bool Coordinator::all_members(Predicate predicate) const {
    return std::all_of(members_.begin(), members_.end(),
                       [&](const auto& entry) { return predicate(entry.second); });
}

void Coordinator::say(int node, FromCoordinator message) {
    answers_.push_back({node, std::move(message)});
}

void Coordinator::say_to_all(const FromCoordinator& message) {
    for (const auto& [node, member] : members_) say(node, message);
}

}  // namespace ddrun::rendezvous
