#include "worker_sdk/core/agent_link.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::detail {
namespace {

using rendezvous::StoreError;

Failure failure_of(StoreError error, std::string words) {
    switch (error) {
        case StoreError::timed_out:
            return {ErrorKind::timed_out, -1, std::move(words)};
        case StoreError::aborted:
            return {ErrorKind::peer_lost, -1, std::move(words)};
        case StoreError::mismatch:
            return {ErrorKind::desynchronised, -1, std::move(words)};
        case StoreError::none:
        case StoreError::not_a_number:
        case StoreError::too_large:
        case StoreError::full:
            return {ErrorKind::store, -1, std::move(words)};
    }
    return {ErrorKind::store, -1, std::move(words)};
}

std::string version_words(std::uint32_t agent) {
    return "the agent speaks version " + std::to_string(agent) +
           " of the worker protocol, this program version " +
           std::to_string(rendezvous::worker_protocol_version) +
           ": build it against the SDK of the installed ddrun";
}

}  // namespace

AgentLink::Actions AgentLink::step(Event event, TimePoint now) {
    std::visit([&](auto& one) { on(one, now); }, event);
    return take();
}

AgentLink::Actions AgentLink::advance_to(TimePoint now) {
    if (earliest_ && *earliest_ <= now) end_late_requests(now);
    if (quiet_ && quiet_until_ <= now) {
        quiet_ = false;
        if (unsent_step_) send_progress(now);
    }
    return take();
}

// The oldest request first, so that what happens does not hang on a table's order.
void AgentLink::end_late_requests(TimePoint now) {
    std::vector<std::pair<std::uint64_t, std::string>> late;
    earliest_.reset();
    for (const auto& [id, open] : open_) {
        if (open.deadline <= now)
            late.emplace_back(id, open.abort_words);
        else
            expect_before(open.deadline);
    }
    std::sort(late.begin(), late.end());
    for (const auto& [id, abort_words] : late) {
        if (abort_words.empty())
            fail(id,
                 {ErrorKind::agent_lost, -1, "the agent of this node has not answered in time"});
        else
            fail(id, {ErrorKind::peer_lost, -1, abort_words});
    }
}

std::optional<TimePoint> AgentLink::next_deadline() const {
    if (!quiet_) return earliest_;
    return earliest_ ? std::min(*earliest_, quiet_until_) : quiet_until_;
}

void AgentLink::expect_before(TimePoint deadline) {
    earliest_ = earliest_ ? std::min(*earliest_, deadline) : deadline;
}

void AgentLink::on(Asked& event, TimePoint) {
    open_.insert_or_assign(event.id, Open{event.deadline, std::move(event.what), {}});
    expect_before(event.deadline);
    switch (state_) {
        case State::greeting:
        case State::open:
            actions_.emplace_back(Send{std::move(event.request)});
            return;
        case State::aborted:
        case State::closed:
            fail(event.id, end_);
            return;
    }
}

void AgentLink::on(Told& event, TimePoint) {
    if (state_ != State::closed) actions_.emplace_back(Send{std::move(event.notice)});
}

void AgentLink::on(const Stepped& event, TimePoint now) {
    if (state_ == State::closed) return;
    unsent_step_ = event.step;
    if (!quiet_) send_progress(now);
}

void AgentLink::on(const Blamed& event, TimePoint) {
    if (blamed_ || state_ == State::closed) return;
    blamed_ = true;
    actions_.push_back(Send{rendezvous::AbortedBecause{event.rank, event.words}});
}

void AgentLink::on(Received& event, TimePoint now) {
    if (state_ == State::closed) return;
    std::visit([&](auto& message) { hear(message, now); }, event.message);
}

void AgentLink::on(const Closed& event, TimePoint) {
    close({ErrorKind::agent_lost, -1, event.words});
}

void AgentLink::on(const Ending&, TimePoint now) {
    if (unsent_step_ && state_ != State::closed) send_progress(now);
}

void AgentLink::hear(rendezvous::Welcome& message, TimePoint) {
    if (state_ != State::greeting)
        return close({ErrorKind::agent_lost, -1, "the agent sent a second welcome"});
    if (message.version != rendezvous::worker_protocol_version)
        return close({ErrorKind::refused, -1, version_words(message.version)});
    state_ = State::open;
    answer(hello_id, rendezvous::ToWorker(message));
}

void AgentLink::hear(rendezvous::Refused& message, TimePoint) {
    close({ErrorKind::refused, -1, "the agent refused this worker: " + message.words});
}

void AgentLink::hear(rendezvous::StoreFailed& message, TimePoint now) {
    const auto found = open_.find(message.id);
    if (found == open_.end()) return;
    if (message.error == StoreError::aborted && state_ == State::open) {
        found->second.deadline = now + cause_patience;
        expect_before(found->second.deadline);
        found->second.abort_words = message.words.empty() ? "the round is over" : message.words;
        return;
    }
    fail(message.id, failure_of(message.error, message.words));
}

void AgentLink::hear(rendezvous::StopRequested& message, TimePoint now) {
    RaiseStop stop{message.signal, std::nullopt};
    if (message.grace_ms > 0) stop.deadline = now + std::chrono::milliseconds(message.grace_ms);
    actions_.push_back(stop);
}

void AgentLink::hear(rendezvous::RoundAborted& message, TimePoint) {
    if (state_ == State::aborted) return;
    if (state_ == State::greeting)
        return close({ErrorKind::peer_lost, message.rank, message.words});
    state_ = State::aborted;
    end_ = {ErrorKind::peer_lost, message.rank, message.words};
    actions_.push_back(EndWaits{end_});
    fail_all();
}

// Any other message is a reply. One whose request has timed out meanwhile concerns nobody.
template <typename Reply>
void AgentLink::hear(Reply& reply, TimePoint) {
    const std::uint64_t id = reply.id;
    answer(id, rendezvous::ToWorker(std::move(reply)));
}

void AgentLink::answer(std::uint64_t id, Outcome outcome) {
    if (open_.erase(id) == 0) return;
    if (open_.empty()) earliest_.reset();
    actions_.emplace_back(Answer{id, std::move(outcome)});
}

// The agent hears of the culprit before the waiting thread does: that thread may end the process.
void AgentLink::fail(std::uint64_t id, const Failure& failure) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    Failure told = failure;
    told.words = found->second.what.words() + ": " + failure.words;
    if (told.kind == ErrorKind::peer_lost) on(Blamed{told.rank, told.words}, {});
    answer(id, std::move(told));
}

void AgentLink::fail_all() {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, open] : open_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const std::uint64_t id : ids) fail(id, end_);
}

void AgentLink::close(const Failure& why) {
    if (state_ == State::closed) return;
    const bool was_aborted = state_ == State::aborted;
    state_ = State::closed;
    unsent_step_.reset();
    quiet_ = false;
    if (!was_aborted) {  // otherwise the peer's death stays the better explanation
        end_ = why;
        actions_.push_back(EndWaits{end_});
    }
    fail_all();
    actions_.push_back(Close{});
}

void AgentLink::send_progress(TimePoint now) {
    actions_.push_back(Send{rendezvous::Progress{*unsent_step_}});
    unsent_step_.reset();
    quiet_ = true;
    quiet_until_ = now + progress_interval;
}

AgentLink::Actions AgentLink::take() {
    return std::exchange(actions_, {});
}

}  // namespace ddrun::detail
