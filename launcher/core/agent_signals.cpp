// What each signal to ddrun means (the table in launcher/README.md).
#include "launcher/core/agent.hpp"
#include "launcher/core/signals.hpp"
#include "launcher/core/words.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {
namespace {

using rendezvous::Cause;
using rendezvous::CauseKind;

bool contains(const std::vector<int>& signals, int signal) {
    return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

std::string sender_words(const SignalArrived& event) {
    if (event.from_terminal) return " from the terminal";
    if (event.from_pid <= 0) return {};
    return " from pid " + std::to_string(event.from_pid) + " uid " + std::to_string(event.from_uid);
}

}  // namespace

void Agent::on(const SignalArrived& event, TimePoint now) {
    if (contains(rules_.ignored_signals, event.signal)) return;
    if (contains(rules_.stop_signals, event.signal)) return stop_signal(event, now);
    if (event.signal == signals::terminal_stop) {
        asleep_ = true;
        tell_group(Suspend{}, now);
        out_.push_back(SuspendSelf{});
    } else if (event.signal == signals::go_on) {
        asleep_ = false;
        if (!fenced_) tell_group(Resume{}, now);
    } else {
        tell_group(ForwardSignal{event.signal}, now);
    }
}

void Agent::stop_signal(const SignalArrived& event, TimePoint now) {
    if (!stop_) return first_stop(event, now);
    const bool same_burst = event.signal == stop_->signal && now - stop_->at < rules_.debounce;
    if (!same_burst) second_stop(event, now);
}

void Agent::first_stop(const SignalArrived& event, TimePoint now) {
    const auto cause = stop_cause(event);
    stop_ = Stop{event.signal, now, cause};
    switch (phase_) {
        case Phase::created:
            return finish(cause);
        case Phase::idle:
        case Phase::unfit:
            out_.push_back(Say{rendezvous::Leave{cause}});
            return expect_verdict(cause, now);
        case Phase::in_round: {
            auto words = signal_name(event.signal) + sender_words(event) + ": stopping, " +
                         duration_text(rules_.group.shutdown_timeout) + " grace";
            if (event.from_terminal) words += "; Ctrl-C again kills at once";
            out_.push_back(GroupAction{Note{words, false}});
            out_.push_back(Say{rendezvous::Leave{cause}});
            return stop_group(event.signal, now);
        }
        case Phase::over:
            return;
    }
}

void Agent::second_stop(const SignalArrived& event, TimePoint now) {
    switch (phase_) {
        case Phase::in_round:
            out_.push_back(GroupAction{Note{"second stop signal (" + signal_name(event.signal) +
                                                sender_words(event) + "): killing at once",
                                            true}});
            return tell_group(KillGroup{}, now);
        case Phase::idle:
        case Phase::unfit:
            return finish(stop_->cause);
        case Phase::created:
        case Phase::over:
            return;
    }
}

Cause Agent::stop_cause(const SignalArrived& event) const {
    Cause cause;
    cause.kind = CauseKind::told_to_stop;
    cause.exit_code = exit_code::signal_base + event.signal;
    cause.words = "stopped by " + signal_name(event.signal) + sender_words(event);
    return located(std::move(cause));
}

}  // namespace ddrun::launcher
