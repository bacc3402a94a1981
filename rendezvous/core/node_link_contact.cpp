// What passes with time: tries, heartbeats, silence, lease and grace.
#include "rendezvous/core/node_link.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr Duration first_progress = std::chrono::seconds(5);
constexpr int silences_in_a_lease = 3;
// A server that saw this connection end waits 5 s for the next one; nobody may have told us.
constexpr Duration longest_silence = std::chrono::seconds(4);
constexpr int least_heartbeats_in_silence = 2;

std::string seconds_text(Duration time) {
    const auto tenths = time / std::chrono::milliseconds(100);
    if (tenths >= 100) return std::to_string(tenths / 10) + " s";
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

// A well-mixed number of two (splitmix64).
std::uint64_t mix(std::uint64_t seed, std::uint64_t number) {
    std::uint64_t z = seed + number * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

}  // namespace

void NodeLink::pass_time(TimePoint now) {
    if (state_ == State::created) {
        trying_since_ = now;
        next_progress_ = now + std::min(first_progress, rules_.progress_every);
        open(now);
    }
    watch_lease(now);
    watch_connection(now);
    watch_contact(now);
    watch_tries(now);
}

std::optional<TimePoint> NodeLink::next_deadline() const {
    std::optional<TimePoint> first;
    const auto consider = [&](TimePoint at) { first = std::min(first.value_or(at), at); };
    switch (state_) {
        case State::created:
            return TimePoint{};
        case State::closed:
            return std::nullopt;
        case State::parting:
            return part_by_;
        case State::greeting:
            consider(greeted_ + rules_.terms.lease);
            break;
        case State::welcomed:
            consider(next_heartbeat_);
            consider(last_heard_ + silence_limit());
            break;
        case State::waiting:
            consider(next_try_);
            break;
        case State::opening:
        case State::over:
            break;
    }
    if (is_trying()) consider(next_progress_);
    if (is_trying() && !was_welcomed()) consider(trying_since_ + rules_.terms.join_timeout);
    if (lost_since_ && !is_over()) consider(*lost_since_ + rules_.rendezvous_grace);
    if (loopback_hint_) consider(*loopback_hint_);
    if (holds_processes() && fence_ == FenceState::clear) consider(lease_end_);
    return first;
}

void NodeLink::watch_connection(TimePoint now) {
    switch (state_) {
        case State::greeting:
            if (now >= greeted_ + rules_.terms.lease) {
                close_connection();
                lose(now, now, "no answer to the hello for " + seconds_text(now - greeted_));
            }
            return;
        case State::welcomed:
            if (now >= last_heard_ + silence_limit()) {
                close_connection();
                lose(now, last_heard_, "no answer for " + seconds_text(now - last_heard_));
            } else if (now >= next_heartbeat_) {
                heartbeat(now);
            }
            return;
        case State::parting:
            if (now >= part_by_) {
                close_connection();
                state_ = State::closed;
            }
            return;
        case State::created:
        case State::opening:
        case State::waiting:
        case State::over:
        case State::closed:
            return;
    }
}

// --- tries --------------------------------------------------------------------------------------

void NodeLink::watch_tries(TimePoint now) {
    if (!is_trying()) return;
    if (!was_welcomed() && now >= trying_since_ + rules_.terms.join_timeout) {
        return end_with(exit_code::group_lost,
                        "no contact with the rendezvous at " + rules_.endpoint +
                            " within the join time-out: " + last_reason_ + tries_in_words(now));
    }
    if (now >= next_progress_) {
        next_progress_ = now + rules_.progress_every;
        const std::string what = was_welcomed() ? "still no contact with the rendezvous at "
                                                : "waiting for the rendezvous at ";
        notice(what + rules_.endpoint + ": " + (last_reason_.empty() ? "no answer" : last_reason_) +
                   tries_in_words(now),
               was_welcomed());
    }
    if (state_ == State::waiting && now >= next_try_) open(now);
}

std::string NodeLink::tries_in_words(TimePoint now) const {
    const TimePoint since = lost_since_.value_or(trying_since_);
    return " (" + std::to_string(tries_) + (tries_ == 1 ? " try in " : " tries in ") +
           seconds_text(now - since) + ")";
}

void NodeLink::try_again(TimePoint now, std::string reason) {
    state_ = State::waiting;
    last_reason_ = std::move(reason);
    next_try_ = now + backoff();
}

Duration NodeLink::backoff() const {
    const int doublings = std::clamp(tries_ - 1, 0, 20);
    const Duration delay = std::min(rules_.retry_first * (1 << doublings), rules_.retry_limit);
    if (rules_.jitter_seed == 0) return delay;
    constexpr int parts = 1000;
    const auto part = mix(rules_.jitter_seed, static_cast<std::uint64_t>(tries_)) % parts;
    return delay - delay / 5 * static_cast<int>(part) / parts;
}

// --- contact ------------------------------------------------------------------------------------

void NodeLink::lose(TimePoint now, TimePoint since, const std::string& reason) {
    unseen_.clear();
    if (is_over()) {
        state_ = State::over;
        return;
    }
    try_again(now, reason);
    if (!was_welcomed() || lost_since_) return;
    lost_since_ = since;
    next_progress_ = now + rules_.progress_every;
    notice("lost contact with the rendezvous at " + rules_.endpoint + ": " + reason +
               (holds_processes() ? "; workers keep running" : "") + "; trying again for " +
               seconds_text(rules_.rendezvous_grace),
           true);
}

void NodeLink::watch_contact(TimePoint now) {
    if (loopback_hint_ && now >= *loopback_hint_) {
        loopback_hint_.reset();
        notice("endpoint " + rules_.endpoint +
                   " is loopback: this node sees only itself and others on this machine, and " +
                   std::to_string(rules_.terms.min_nodes) + " nodes are needed",
               true);
    }
    if (!lost_since_ || is_over() || now < *lost_since_ + rules_.rendezvous_grace) return;
    end_with(exit_code::group_lost, "rendezvous host " + rules_.endpoint + " lost for " +
                                        seconds_text(now - *lost_since_) + ": " + last_reason_);
}

void NodeLink::contact_is_back(TimePoint now) {
    if (!lost_since_) return;
    notice("contact with the rendezvous at " + rules_.endpoint + " is back after " +
               seconds_text(now - *lost_since_),
           false);
    lost_since_.reset();
}

void NodeLink::heartbeat(TimePoint now) {
    unseen_.push_back({++heartbeats_, now});
    next_heartbeat_ = now + rules_.terms.heartbeat;
    out_.push_back(SendToServer{Heartbeat{heartbeats_, inbox_.last()}});
}

// Well within the lease, so that another connection is tried before the workers freeze.
Duration NodeLink::silence_limit() const {
    const Duration silence = std::min(rules_.terms.lease / silences_in_a_lease, longest_silence);
    return std::max(silence, rules_.terms.heartbeat * least_heartbeats_in_silence);
}

// --- the fence ----------------------------------------------------------------------------------

void NodeLink::renew_lease(TimePoint heard_from) {
    const TimePoint end = heard_from + rules_.terms.lease - lease_margin(rules_.terms.lease);
    if (end <= lease_end_) return;
    lease_end_ = end;
    out_.push_back(LeaseUntil{end});
}

void NodeLink::watch_lease(TimePoint now) {
    if (!holds_processes() || fence_ != FenceState::clear || now < lease_end_) return;
    fence(FenceStep::freeze, "no contact with the rendezvous at " + rules_.endpoint +
                                 " and the lease ends: the workers are frozen until it is back");
}

void NodeLink::confirm_round(std::int32_t round, TimePoint now) {
    if (round == round_not_known) return contact_is_back(now);
    const bool is_ours = round == standing_.grant.round;
    if (holds_processes() && !is_ours) {
        fence(FenceStep::kill, "the job went on without this node: its round is " +
                                   std::to_string(round) + ", the workers here are of round " +
                                   std::to_string(standing_.grant.round));
        lost_since_.reset();
        return;
    }
    contact_is_back(now);
    // The answer to an old heartbeat does not do: its lease has ended.
    if (fence_ == FenceState::frozen && now < lease_end_)
        fence(FenceStep::thaw, "the rendezvous confirmed round " + std::to_string(round));
}

void NodeLink::fence(FenceStep step, std::string words) {
    switch (step) {
        case FenceStep::freeze:
            fence_ = FenceState::frozen;
            break;
        case FenceStep::thaw:
            fence_ = FenceState::clear;
            break;
        case FenceStep::kill:
            if (std::exchange(fence_, FenceState::killed) == FenceState::killed) return;
            break;
    }
    out_.push_back(Fence{step, std::move(words)});
}

// --- the end ------------------------------------------------------------------------------------

void NodeLink::end_with(int exit_code, std::string words) {
    if (standing_.verdict) words.clear();  // the server had the last word
    Verdict verdict;
    verdict.exit_code = exit_code;
    verdict.has_cause = true;
    verdict.cause.kind = standing_.grant.round > 0 ? CauseKind::node_lost : CauseKind::never_formed;
    verdict.cause.exit_code = exit_code;
    verdict.cause.node_rank = standing_.grant.node_rank;
    verdict.cause.node_name = rules_.offer.node_name;
    verdict.cause.words = std::move(words);
    verdict.restarts_used = standing_.restarts_used;
    if (holds_processes()) fence(FenceStep::kill, verdict.cause.words);
    close_connection();
    state_ = State::over;
    lost_since_.reset();
    if (standing_.verdict) return;
    standing_.verdict = verdict;
    out_.push_back(Deliver{FromCoordinator(std::move(verdict))});
}

void NodeLink::notice(std::string words, bool warning) {
    out_.push_back(Deliver{FromCoordinator(Notice{std::move(words), warning})});
}

// --- states -------------------------------------------------------------------------------------

bool NodeLink::is_trying() const {
    return state_ == State::opening || state_ == State::greeting || state_ == State::waiting;
}

bool NodeLink::holds_processes() const {
    return standing_.grant.round > 0 && !standing_.gone && !standing_.done;
}

bool NodeLink::is_over() const {
    return standing_.verdict && !(leaving_ && holds_processes());
}

std::string_view NodeLink::name_of_state() const {
    switch (state_) {
        case State::created:
            return "created";
        case State::opening:
            return "opening";
        case State::greeting:
            return "greeting";
        case State::welcomed:
            return "welcomed";
        case State::waiting:
            return "waiting";
        case State::over:
            return "over";
        case State::parting:
            return "parting";
        case State::closed:
            return "closed";
    }
    return "?";
}

std::string NodeLink::describe() const {
    return std::string(name_of_state()) + ", round " + std::to_string(standing_.grant.round) +
           ", try " + std::to_string(tries_) + ", " + std::to_string(outbox_.size()) +
           " payloads not heard, " + std::to_string(memory_.open()) + " store requests open" +
           (fence_ == FenceState::frozen ? ", frozen" : "") +
           (fence_ == FenceState::killed ? ", fenced off" : "") +
           (standing_.verdict ? ", verdict " + std::to_string(standing_.verdict->exit_code) : "");
}

}  // namespace ddrun::rendezvous
