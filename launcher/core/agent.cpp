#include "launcher/core/agent.hpp"

#include "launcher/core/overloaded.hpp"
#include "launcher/core/signals.hpp"
#include "launcher/core/words.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {
namespace {

using rendezvous::Cause;
using rendezvous::CauseKind;
using rendezvous::RoundGranted;
using rendezvous::StopRound;
using rendezvous::Verdict;

// Once nothing of ours is left, a stop must not wait for a coordinator that may be gone itself.
constexpr auto verdict_patience = std::chrono::milliseconds(500);

Cause node_cause(CauseKind kind, int exit_code, std::string words) {
    Cause cause;
    cause.kind = kind;
    cause.exit_code = exit_code;
    cause.words = std::move(words);
    return cause;
}

// Somebody else's stop signal is passed on as it is; a failure ends the others by SIGTERM.
int signal_of(const Cause& cause) {
    const int signal = cause.exit_code - exit_code::signal_base;
    return cause.kind == CauseKind::told_to_stop && signal > 0 ? signal : signals::terminate;
}

}  // namespace

Agent::Agent(AgentRules rules) : rules_(std::move(rules)) {
    grant_.round = 0;  // none yet: the first one is round 1
}

Agent::Actions Agent::step(const AgentEvent& event, TimePoint now) {
    if (phase_ == Phase::over) return {};
    std::visit([&](const auto& happened) { on(happened, now); }, event);
    return std::exchange(out_, {});
}

Agent::Actions Agent::advance_to(TimePoint now) {
    if (phase_ == Phase::over) return {};
    if (group_) take(group_->advance_to(now), now);
    if (phase_ != Phase::over && own_end_ && now >= own_end_->due) finish(Cause(own_end_->cause));
    return std::exchange(out_, {});
}

std::optional<TimePoint> Agent::next_deadline() const {
    if (phase_ == Phase::over) return std::nullopt;
    auto first = group_ ? group_->next_deadline() : std::nullopt;
    if (own_end_) first = std::min(first.value_or(own_end_->due), own_end_->due);
    return first;
}

void Agent::on(const Started&, TimePoint) {
    if (phase_ != Phase::created) return;
    phase_ = Phase::idle;
    out_.push_back(Say{rules_.join});
}

// --- what the coordinator says -------------------------------------------------------------------

void Agent::on(const rendezvous::FromCoordinator& event, TimePoint now) {
    std::visit([&](const auto& message) { on(message, now); }, event);
}

void Agent::on(const RoundGranted& grant, TimePoint now) {
    if (phase_ != Phase::idle || grant.round <= grant_.round) return;
    grant_ = grant;
    round_gone_said_ = false;
    if (stop_ || own_end_) return;  // it crossed our goodbye; StopRound follows
    reported_ = succeeded_ = healthy_said_ = round_stopped_ = fenced_ = false;
    round_began_ = now;
    rules_.group.first_rank = grant.first_rank;
    group_.emplace(rules_.group);
    phase_ = Phase::in_round;
    round_open_ = true;
    out_.push_back(BeginRound{grant});
    take(group_->start(now), now);
}

void Agent::on(const StopRound& stop, TimePoint now) {
    if (stop.round != grant_.round) return;
    restarts_used_ = stop.restarts_used;
    round_stopped_ = true;
    note_attempt(stop, now);
    switch (phase_) {
        case Phase::in_round:
            if (!reported_ && stop.cause.kind != CauseKind::told_to_stop) {
                const int rank = is_about_workers(stop.cause.kind) ? stop.cause.failure.rank : -1;
                out_.push_back(GroupAction{TellWorkersAborted{rank, stop.cause.words}});
            }
            lift_fence(now);  // the stop is about this very round, so contact is back
            stop_group(signal_of(stop.cause), now);
            break;
        case Phase::idle:
            round_gone();
            break;
        case Phase::created:
        case Phase::unfit:
        case Phase::over:
            break;
    }
}

void Agent::on(const Verdict& verdict, TimePoint now) {
    if (phase_ != Phase::in_round) return finish(verdict);
    verdict_ = verdict;
    stop_group(verdict.has_cause ? signal_of(verdict.cause) : signals::terminate, now);
}

void Agent::on(const rendezvous::Parked&, TimePoint) {
    out_.push_back(GroupAction{Note{"this node is a spare; it waits until one is needed", false}});
}

void Agent::on(const rendezvous::Notice& notice, TimePoint) {
    out_.push_back(GroupAction{Note{notice.words, notice.warning}});
}

void Agent::note_attempt(const StopRound& stop, TimePoint now) {
    const CauseKind kind = stop.cause.kind;
    if (kind == CauseKind::membership || kind == CauseKind::node_left) {
        out_.push_back(GroupAction{Note{stop.cause.words + ": the group forms anew", false}});
        return;
    }
    if (stop.max_restarts == 0 || kind == CauseKind::told_to_stop) return;
    auto words = "attempt " + std::to_string(grant_.round);
    if (stop.will_restart) words.append("/").append(std::to_string(stop.max_restarts));
    words += " failed after " + duration_text(now - round_began_) + ": " + stop.cause.words;
    if (stop.will_restart) {
        words += "; restart " + std::to_string(stop.restarts_used) + " of " +
                 std::to_string(stop.max_restarts);
        if (stop.restart_delay > Duration::zero())
            words += " in " + duration_text(stop.restart_delay);
    } else if (stop.why_no_restart.empty()) {
        words += "; no restart is left";
    } else {
        words += "; no restart: " + stop.why_no_restart;
    }
    out_.push_back(GroupAction{Note{words, true}});
}

// --- what breaks around the workers --------------------------------------------------------------

void Agent::on(const KeeperLost& event, TimePoint now) {
    const auto cause =
        located(node_cause(CauseKind::keeper_lost, exit_code::system_refused, event.words));
    if (phase_ == Phase::in_round || phase_ == Phase::unfit) {
        // Its workers died with it: the records say so, and nobody is left to perform the actions.
        (void)group_->step(KillGroup{}, now);
        (void)group_->step(TreesGone{}, now);
    }
    if (phase_ != Phase::created)
        out_.push_back(Say{rendezvous::FailureReport{grant_.round, cause}});
    finish(cause);
}

void Agent::on(const FenceChanged& event, TimePoint now) {
    if (phase_ == Phase::created) return;
    if (!event.words.empty()) {
        out_.push_back(GroupAction{Note{event.words, event.step != FenceChanged::Step::thaw}});
    }
    switch (event.step) {
        case FenceChanged::Step::freeze:
            fenced_ = true;
            // Whoever was told to stop does not wait for a server, and the frozen cannot answer.
            return tell_group(stop_ ? GroupEvent(KillGroup{}) : GroupEvent(Suspend{}), now);
        case FenceChanged::Step::thaw:
            return lift_fence(now);
        case FenceChanged::Step::kill:
            fenced_ = false;
            return tell_group(KillGroup{}, now);
    }
}

void Agent::lift_fence(TimePoint now) {
    if (std::exchange(fenced_, false) && !asleep_) tell_group(Resume{}, now);
}

void Agent::on(const ShellFailed& event, TimePoint now) {
    const auto cause = located(node_cause(CauseKind::spawn_failed, event.exit_code, event.words));
    switch (phase_) {
        case Phase::created:
            return finish(cause);
        case Phase::idle:
            report(cause);
            return expect_verdict(cause, now);
        case Phase::in_round: {
            report(cause);
            // Without a single answer the workers were perhaps never asked for, and nobody would
            // end.
            const auto& workers = group_->workers();
            const bool none_started =
                std::all_of(workers.begin(), workers.end(),
                            [](const WorkerRecord& worker) { return worker.awaited; });
            return none_started ? tell_group(KillGroup{}, now)
                                : stop_group(signals::terminate, now);
        }
        case Phase::unfit:
        case Phase::over:
            return;
    }
}

// --- the round's workers -------------------------------------------------------------------------

void Agent::on(const GroupEvent& event, TimePoint now) {
    if (group_) take(group_->step(event, now), now);
}

void Agent::tell_group(const GroupEvent& event, TimePoint now) {
    if (phase_ == Phase::in_round) take(group_->step(event, now), now);
}

// Frozen workers cannot answer, and must not run to do so.
void Agent::stop_group(int signal, TimePoint now) {
    tell_group(fenced_ ? GroupEvent(KillGroup{}) : GroupEvent(StopGroup{signal}), now);
}

void Agent::take(WorkerGroup::Actions actions, TimePoint now) {
    for (auto& action : actions) {
        std::visit(Overloaded{
                       [&](GroupFailed& failed) { report(std::move(failed.cause)); },
                       [&](NodeUnfit& unfit) {
                           phase_ = Phase::unfit;
                           still_there_ = unfit.cause.words;
                           report(unfit.cause);
                           expect_verdict(unfit.cause, now);
                       },
                       [&](GroupSucceeded&) { succeeded_ = true; },
                       [&](GroupGone&) { group_gone(now); },
                       [&](StepReached&) {
                           if (!std::exchange(healthy_said_, true)) {
                               out_.push_back(Say{rendezvous::StepCommitted{grant_.round}});
                           }
                       },
                       [&](auto& performed) { out_.push_back(GroupAction{std::move(performed)}); },
                   },
                   action);
    }
}

void Agent::group_gone(TimePoint now) {
    end_round();
    const bool was_unfit = phase_ == Phase::unfit;
    still_there_.clear();
    phase_ = Phase::idle;
    if (verdict_) return finish(Verdict(*verdict_));
    if (succeeded_ && !reported_ && !stop_) {
        out_.push_back(Say{rendezvous::NodeDone{grant_.round}});
        if (!round_stopped_) return;  // it stays; where the round is being stopped, it says so too
    }
    round_gone();
    if (stop_ && !was_unfit) expect_verdict(stop_->cause, now);
}

void Agent::round_gone() {
    if (std::exchange(round_gone_said_, true)) return;
    out_.push_back(Say{rendezvous::RoundGone{grant_.round}});
}

void Agent::report(Cause cause) {
    reported_ = true;
    out_.push_back(Say{rendezvous::FailureReport{grant_.round, located(std::move(cause))}});
}

// --- the end -------------------------------------------------------------------------------------

void Agent::expect_verdict(Cause otherwise, TimePoint now) {
    own_end_ = OwnEnd{now + verdict_patience, located(std::move(otherwise))};
}

void Agent::finish(const Verdict& verdict) {
    end_round();
    phase_ = Phase::over;
    Finish last;
    last.exit_code = verdict.exit_code;
    if (verdict.has_cause) last.cause = verdict.cause;
    if (group_) last.workers = group_->workers();
    last.restarts_used = verdict.restarts_used;
    last.shutdown_timeout = rules_.group.shutdown_timeout;
    last.why_no_restart = verdict.why_no_restart;
    last.still_there = still_there_;
    out_.push_back(std::move(last));
}

void Agent::finish(const Cause& cause) {
    finish(Verdict{cause.exit_code, true, cause, restarts_used_, {}});
}

void Agent::end_round() {
    if (std::exchange(round_open_, false)) out_.push_back(EndRound{grant_.round});
}

Cause Agent::located(Cause cause) const {
    cause.node_name = rules_.node_name;
    cause.node_rank = grant_.node_rank;
    return cause;
}

std::string Agent::describe() const {
    auto name = [this] {
        switch (phase_) {
            case Phase::created:
                return "created";
            case Phase::idle:
                return "idle";
            case Phase::in_round:
                return "in round";
            case Phase::unfit:
                return "unfit";
            case Phase::over:
                return "over";
        }
        return "?";
    };
    return std::string(name()) + ", round " + std::to_string(grant_.round) +
           (stop_ ? ", told to stop by " + signal_name(stop_->signal) : "") +
           (group_ ? "; group " + group_->describe() : "");
}

}  // namespace ddrun::launcher
