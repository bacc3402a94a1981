#include "rendezvous/core/node_link.hpp"

#include "rendezvous/protocol/exit_status.hpp"

#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr auto parting_time = std::chrono::seconds(1);
constexpr auto loopback_patience = std::chrono::seconds(5);

bool is_loopback(std::string_view address) {
    return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

}  // namespace

NodeLink::NodeLink(NodeLinkRules rules) : rules_(std::move(rules)) {
    standing_.grant.round = 0;  // none yet
}

NodeLink::Actions NodeLink::step(NodeLinkEvent event, TimePoint now) {
    if (state_ == State::closed) return {};
    if (std::holds_alternative<FromServer>(event) || std::holds_alternative<ConnectionMoved>(event))
        last_heard_ = now;
    pass_time(now);
    std::visit([&](auto& happened) { on(happened, now); }, event);
    return std::exchange(out_, {});
}

NodeLink::Actions NodeLink::advance_to(TimePoint now) {
    if (state_ == State::closed) return {};
    pass_time(now);
    return std::exchange(out_, {});
}

// --- the connection -----------------------------------------------------------------------------

void NodeLink::open(TimePoint) {
    state_ = State::opening;
    ++tries_;
    out_.push_back(OpenConnection{});
}

void NodeLink::on(const ConnectionOpened& event, TimePoint now) {
    if (state_ != State::opening) return;
    connection_ = event;
    const bool published = rules_.offer.address.empty() && rules_.terms.max_nodes > 1;
    if (published && is_loopback(event.local_address) && !event.remote_is_this_node) {
        return end_with(exit_code::group_lost, "the only address of this node that reaches " +
                                                   rules_.endpoint + " is " + event.local_address +
                                                   ", which other nodes cannot reach: give one "
                                                   "with --local-addr");
    }
    state_ = State::greeting;
    greeted_ = now;
    out_.push_back(SendToServer{hello()});
}

NodeHello NodeLink::hello() const {
    NodeHello hello;
    hello.build = rules_.build;
    hello.terms = rules_.terms;
    hello.offer = rules_.offer;
    if (hello.offer.address.empty()) hello.offer.address = connection_.local_address;
    if (connection_.remote_is_this_node) hello.offer.hosts_endpoint = true;
    hello.node_incarnation = rules_.node_incarnation;
    hello.obituary_token = rules_.obituary_token;
    hello.job_incarnation = job_incarnation_;
    hello.heard = inbox_.last();
    hello.standing = standing_;
    return hello;
}

void NodeLink::on(const ConnectionFailed& event, TimePoint now) {
    if (state_ != State::opening) return;
    if (!event.fatal) return try_again(now, event.words);
    state_ = State::waiting;  // nothing to close
    end_with(event.exit_code, event.words);
}

void NodeLink::on(const ConnectionLost& event, TimePoint now) {
    switch (state_) {
        case State::greeting:
        case State::welcomed:
            return lose(now, now, event.words);
        case State::parting:
            state_ = State::closed;
            return;
        case State::created:
        case State::opening:
        case State::waiting:
        case State::over:
        case State::closed:
            return;
    }
}

void NodeLink::close_connection() {
    switch (state_) {
        case State::opening:
        case State::greeting:
        case State::welcomed:
        case State::parting:
            out_.push_back(CloseConnection{});
            unseen_.clear();
            return;
        case State::created:
        case State::waiting:
        case State::over:
        case State::closed:
            return;
    }
}

void NodeLink::on(const NodeFinished& event, TimePoint now) {
    if (state_ == State::parting) return;
    if (state_ != State::welcomed) {
        close_connection();
        state_ = State::closed;
        return;
    }
    heartbeat(now);  // says what was heard, and its answer that this was heard
    if (!event.processes_left) out_.push_back(SendToServer{Goodbye{}});
    state_ = State::parting;
    part_by_ = now + parting_time;
}

// --- what the server says -----------------------------------------------------------------------

void NodeLink::on(FromServer& event, TimePoint now) {
    std::visit([&](auto& message) { on(message, now); }, event);
}

void NodeLink::on(const NodeWelcome& welcome, TimePoint now) {
    if (state_ != State::greeting) return;
    if (welcome.version < oldest_node_protocol || welcome.version > newest_node_protocol) {
        return end_with(exit_code::not_authorised, "the rendezvous at " + rules_.endpoint +
                                                       " speaks version " +
                                                       std::to_string(welcome.version) +
                                                       " of the protocol, this ddrun speaks " +
                                                       std::to_string(newest_node_protocol));
    }
    // Before its first round a node may find itself in a run that the server met later.
    const bool is_bound = was_welcomed() && standing_.grant.round > 0;
    if (is_bound && welcome.job_incarnation != job_incarnation_) {
        return end_with(exit_code::group_lost,
                        "the rendezvous at " + rules_.endpoint + " serves another run of this job");
    }
    if (!was_welcomed()) {
        renew_lease(greeted_);
        if (is_loopback(connection_.local_address) && rules_.terms.max_nodes > 1)
            loopback_hint_ = now + loopback_patience;
    }
    job_incarnation_ = welcome.job_incarnation;
    state_ = State::welcomed;
    out_.push_back(ArmObituary{connection_.remote_address});
    if (welcome.present_keys) {
        present(now);
    } else {
        outbox_.heard(welcome.heard);
    }
    resend();
    heartbeat(now);
}

void NodeLink::on(const NodeRefused& refusal, TimePoint now) {
    if (state_ != State::greeting && state_ != State::welcomed) return;
    if (!refusal.retry_later) {
        const int code = refusal.exit_code != 0 ? refusal.exit_code : exit_code::group_lost;
        return end_with(code, refusal.words);
    }
    if (!std::exchange(told_to_wait_, true)) notice(refusal.words + "; trying again", false);
    close_connection();
    lose(now, now, refusal.words);
}

void NodeLink::on(const HeartbeatSeen& seen, TimePoint now) {
    if (state_ == State::parting && seen.number == heartbeats_) {
        close_connection();
        state_ = State::closed;
    }
    if (state_ != State::welcomed) return;
    outbox_.heard(seen.heard);
    while (!unseen_.empty() && unseen_.front().number <= seen.number) {
        if (unseen_.front().number == seen.number) renew_lease(unseen_.front().at);
        unseen_.pop_front();
    }
    tries_ = 0;
    release_held(now);
    confirm_round(seen.round, now);
}

void NodeLink::on(FromServerPayload& payload, TimePoint now) {
    if (state_ != State::welcomed) return;
    outbox_.heard(payload.heard);
    if (!inbox_.accept(payload.sequence)) return;
    std::visit([&](auto& one) { pass_on(one, now); }, payload.payload);
}

// A grant that was read late, by an agent that had been stopped, may be one of a job that went on
// without this node: it waits, and what follows it, until the server is known to count on us.
void NodeLink::pass_on(FromCoordinator& message, TimePoint now) {
    const bool is_late = std::holds_alternative<RoundGranted>(message) && now >= lease_end_;
    if (std::holds_alternative<Verdict>(message)) {
        held_.clear();
    } else if (is_late || !held_.empty()) {
        held_.push_back(std::move(message));
        return;
    }
    deliver(message, now);
}

void NodeLink::release_held(TimePoint now) {
    if (now >= lease_end_) return;
    for (FromCoordinator& message : std::exchange(held_, {})) deliver(message, now);
}

void NodeLink::deliver(FromCoordinator& message, TimePoint now) {
    std::visit([&](const auto& one) { note(one); }, message);
    const bool is_verdict = std::holds_alternative<Verdict>(message);
    out_.push_back(Deliver{std::move(message)});
    if (is_verdict) heartbeat(now);  // the server goes once all nodes have heard it
}

void NodeLink::pass_on(StoreAnswered& answer, TimePoint) {
    if (memory_.answered(answer)) out_.push_back(Deliver{std::move(answer)});
}

void NodeLink::note(const RoundGranted& grant) {
    const int restarts_used = standing_.restarts_used;
    standing_ = {};
    standing_.grant = grant;
    standing_.restarts_used = restarts_used;
    memory_.begin_round(grant.round);
    aborted_.reset();
    fence_ = FenceState::clear;
    loopback_hint_.reset();
    if (!leaving_) unsettled_.clear();
}

void NodeLink::note(const StopRound& stop) {
    if (stop.round != standing_.grant.round) return;
    standing_.stop = stop;
    standing_.restarts_used = stop.restarts_used;
    if (!leaving_) unsettled_.clear();
}

void NodeLink::note(const Verdict& verdict) {
    standing_.verdict = verdict;
    standing_.restarts_used = verdict.restarts_used;
    unsettled_.clear();
    loopback_hint_.reset();
    if (!is_over()) return;
    // Over for this node, which may have been given up: another round can be running by now, beside
    // which what is frozen here must not wake, not even to end.
    if (fence_ == FenceState::frozen)
        fence(FenceStep::kill,
              "the job is over for this node; frozen workers are not woken for that");
    lease_end_ = TimePoint::max();
    out_.push_back(LeaseUntil{lease_end_});
}

// --- what the agent and its workers say ---------------------------------------------------------

void NodeLink::on(Submit& event, TimePoint now) {
    std::visit([&](auto& one) { submit(one, now); }, event.payload);
}

void NodeLink::submit(ToCoordinator& message, TimePoint) {
    if (std::holds_alternative<Join>(message)) return;
    const bool may_be_lost = note(message);
    const auto kept = std::make_shared<const ToJob>(std::move(message));
    post(kept);
    if (may_be_lost) unsettled_.emplace(last_ticket_, kept);
}

bool NodeLink::note(const ToCoordinator& message) {
    const int round = standing_.grant.round;
    if (const auto* done = std::get_if<NodeDone>(&message); done && done->round == round)
        standing_.done = true;
    if (const auto* gone = std::get_if<RoundGone>(&message); gone && gone->round == round)
        standing_.gone = true;
    if (const auto* step = std::get_if<StepCommitted>(&message); step && step->round == round)
        standing_.healthy = true;
    if (std::holds_alternative<Leave>(message)) leaving_ = true;
    return std::holds_alternative<Leave>(message) || std::holds_alternative<FailureReport>(message);
}

void NodeLink::submit(StoreAsked& asked, TimePoint now) {
    if (aborted_) return answer(asked, StoreError::aborted, *aborted_);
    const auto kept = std::make_shared<const ToJob>(std::move(asked));
    switch (const auto error = memory_.asked(kept, last_ticket_ + 1, now)) {
        case StoreError::none:
            return post(kept);
        case StoreError::full:
            return answer(std::get<StoreAsked>(*kept), error,
                          "too many store requests of this node have no answer yet");
        case StoreError::mismatch:
            return answer(std::get<StoreAsked>(*kept), error,
                          "a request with this id has no answer yet");
        case StoreError::aborted:
            return answer(std::get<StoreAsked>(*kept), error, "the round is over");
        case StoreError::timed_out:
        case StoreError::not_a_number:
        case StoreError::too_large:
            return;
    }
}

void NodeLink::submit(StoreForgotten& forgotten, TimePoint) {
    if (forgotten.round == memory_.round()) memory_.forget(forgotten.rank);
    post(std::make_shared<const ToJob>(forgotten));
}

void NodeLink::on(const AbortWaits& event, TimePoint) {
    if (event.round != memory_.round()) return;
    aborted_ = event.words;
    for (StoreAnswered& failed : memory_.abort(event.words))
        out_.push_back(Deliver{std::move(failed)});
}

void NodeLink::answer(const StoreAsked& asked, StoreError error, std::string words) {
    const auto id = request_id(asked.request);
    if (!id) return;
    out_.push_back(Deliver{StoreAnswered{asked.round, asked.rank, 0, false,
                                         StoreFailed{*id, error, std::move(words)}}});
}

void NodeLink::post(Kept payload) {
    const Posted posted{++last_ticket_, std::move(payload)};
    const auto sequence = outbox_.put(posted);
    if (state_ == State::welcomed) send(sequence, posted);
}

void NodeLink::send(std::uint64_t sequence, const Posted& posted) {
    out_.push_back(SendToServer{FromNodePayload{sequence, inbox_.last(), *posted.payload}});
}

void NodeLink::resend() {
    outbox_.resend(
        [this](std::uint64_t sequence, const Posted& posted) { send(sequence, posted); });
}

// Numbers count from 1 again on both sides (NodeWelcome).
void NodeLink::present(TimePoint now) {
    auto all = memory_.open_requests(now);
    all.insert(unsettled_.begin(), unsettled_.end());
    outbox_.resend(
        [&](std::uint64_t, const Posted& posted) { all.emplace(posted.ticket, posted.payload); });
    outbox_ = {};
    inbox_ = {};
    held_.clear();
    for (const auto& [ticket, payload] : all) (void)outbox_.put(Posted{ticket, payload});
    for (PresentKeys& part : memory_.present()) out_.push_back(SendToServer{std::move(part)});
    if (memory_.unknown() > 0) {
        notice("this node no longer knows " + std::to_string(memory_.unknown()) +
                   " of the store's values: they may be missing from the restarted rendezvous",
               true);
    }
}

}  // namespace ddrun::rendezvous
