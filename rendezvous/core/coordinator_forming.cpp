// Who takes part: joining, waiting for enough nodes, and granting rounds.

#include "rendezvous/core/coordinator.hpp"
#include "rendezvous/core/verdict.hpp"
#include "rendezvous/protocol/fnv1a.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr Duration first_progress = std::chrono::seconds(5);
constexpr Duration progress_every = std::chrono::seconds(20);
constexpr int free_formings_anew = 3;  // without a healthy round

std::string number(int n) {
    return std::to_string(n);
}

std::string seconds_text(Duration time) {
    return std::to_string(std::chrono::round<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

// --- joining ------------------------------------------------------------------------------------

void Coordinator::on(int node, const Join& join, TimePoint now) {
    if (state_ == State::over) return say(node, verdict_);
    if (members_.contains(node)) return;
    if (std::string words = refusal(join); !words.empty()) return refuse(node, std::move(words));
    members_.add(node, join);
    newcomer(node, now);
}

std::string Coordinator::refusal(const Join& join) const {
    const int places = rules_.nodes + rules_.spares;
    if (members_.tally().present >= places) return complete_words();
    const int wish = join.wished_node_rank;
    const std::string wished = "node rank " + number(wish);
    if (wish >= places) {
        return wished + " does not exist in a group of " + number(rules_.nodes) + " nodes" +
               (rules_.spares > 0 ? " and " + number(rules_.spares) + " spares" : "");
    }
    if (join.slots < 1) return "a node without slots cannot take part";
    const Member* holder = wish >= 0 ? members_.holder_of(wish) : nullptr;
    if (holder != nullptr) return wished + " is already held by " + holder->offer.node_name;
    return {};
}

std::string Coordinator::complete_words() const {
    return "the group of " + number(rules_.nodes) + " nodes is complete";
}

void Coordinator::refuse(int node, std::string words) {
    Cause cause;
    cause.kind = CauseKind::never_formed;
    cause.words = std::move(words);
    dismiss(node, cause);
}

// Ends the job for one node that is in no round; the others go on without it.
void Coordinator::dismiss(int node, const Cause& cause) {
    members_.remove(node);
    say(node, Verdict{exit_code_of(cause), true, cause, budget_.used(), {}});
}

void Coordinator::newcomer(int node, TimePoint now) {
    switch (state_) {
        case State::forming:
            return form(now);
        case State::running:
            admit_newcomers(node, now);
            if (state_ == State::running) park(node);
            return;
        case State::deciding:
        case State::stopping:
            return say(node, Notice{"a round is ending; this node waits for the next one", false});
        case State::backing_off:
        case State::short_handed:
            return between_rounds(now);
        case State::over:
            return;
    }
}

void Coordinator::park(int node) {
    if (members_.find(node)->parked) return;
    members_.update(node, [](Member& member) { member.parked = true; });
    say(node, Parked{});
}

// A running group that is not complete forms anew for those who wait. A few times at once; then
// nodes that come one after the other wait for each other, and one that comes and goes ends the
// job. `newcomer`: the one to look at, where there is one.
void Coordinator::admit_newcomers(std::optional<int> newcomer, TimePoint now) {
    admit_at_.reset();
    const MemberTable::Tally& tally = members_.tally();
    if (is_closing() || tally.ready == 0 || tally.seated >= rules_.nodes) return;
    const Member* member = newcomer ? members_.find(*newcomer) : nullptr;
    const bool comes_and_goes = member != nullptr && leavers_.contains(member->offer.node_name);
    const bool is_healthy = budget_.was_healthy(life_until(now));
    if (formed_anew_ >= free_formings_anew && !is_healthy && !comes_and_goes) {
        admit_at_ = round_started_ + rules_.minimum_uptime;
        return;
    }
    const std::vector<int> chosen = chosen_of_waiting(rules_.nodes - tally.seated);
    cause_ = stamped(*members_.find(chosen.front()), {});
    cause_.kind = CauseKind::membership;
    cause_.words = "node " + cause_.node_name + " joined";
    if (chosen.size() > 1) cause_.words += ", and " + std::to_string(chosen.size() - 1) + " more";
    first_report_ = now;
    stop_round(form_anew(now), now);
}

RestartDecision Coordinator::form_anew(TimePoint now) {
    const RoundLife life = life_until(now);
    budget_.note_no_failure(life);
    if (budget_.was_healthy(life)) {
        formed_anew_ = 0;
        leavers_.clear();
    }
    if (++formed_anew_ <= free_formings_anew) return {true, false, {}, {}};
    cause_.kind = CauseKind::membership;
    cause_.words += "; the group formed anew " + number(free_formings_anew) +
                    " times, and no round lived " + seconds_text(rules_.minimum_uptime) +
                    " or committed a step";
    return {};
}

// A silent node is back, and others came for its place meanwhile.
void Coordinator::make_room_for(int node) {
    const Member& member = *members_.find(node);
    const int wish = member.offer.wished_node_rank;
    if (const Member* rival = wish >= 0 ? members_.holder_of(wish, node) : nullptr) {
        if (member.seated && rival->seated) return;  // they go on as they are
        const bool stays = !rival->seated;
        const Member& loser = stays ? *rival : member;
        const Member& winner = stays ? member : *rival;
        return refuse(loser.node, "node rank " + number(wish) + " is already held by " +
                                      winner.offer.node_name);
    }
    if (members_.tally().present <= rules_.nodes + rules_.spares) return;
    // Who was in a round before goes last, then who came first.
    const auto claim = [](const Member& waiting) {
        return std::pair(waiting.node_rank < 0, waiting.arrival);
    };
    const Member* latest = nullptr;
    for (const auto& [other, waiting] : members_) {
        if (waiting.seated || waiting.silent()) continue;
        if (latest == nullptr || claim(waiting) > claim(*latest)) latest = &waiting;
    }
    if (latest != nullptr) refuse(latest->node, complete_words());
}

// --- waiting for enough nodes -------------------------------------------------------------------

void Coordinator::form(TimePoint now) {
    const int ready = members_.tally().ready;
    // After a restart of the server others may run a round.
    if (members_.contains(absent_node(0))) return;
    if (ready >= rules_.nodes) return grant_round(now);
    if (members_.empty()) return enter(State::forming);
    if (!waiting_since_) waiting_began(now);
    if (ready < rules_.least_nodes()) {
        last_call_ends_.reset();
    } else if (!last_call_ends_) {
        last_call_ends_ = now + rules_.last_call;
    }
    const TimePoint patience = *waiting_since_ + rules_.join_timeout;
    deadline_ = std::min(last_call_ends_.value_or(patience), patience);
}

void Coordinator::waiting_began(TimePoint now) {
    waiting_since_ = now;
    progress_at_ = now + first_progress;
}

void Coordinator::give_up_forming() {
    cause_ = {};
    cause_.kind = CauseKind::never_formed;
    cause_.words = number(members_.tally().ready) + " of " + number(rules_.nodes) +
                   " nodes joined within " + seconds_text(rules_.join_timeout) + ": " +
                   names_of_members();
    decision_ = {};
    end_with_cause();
}

// Nothing of the last round is left. Whoever is there suffices where it is enough.
void Coordinator::between_rounds(TimePoint now) {
    const MemberTable::Tally& tally = members_.tally();
    if (members_.empty()) return end_with_cause();
    if (tally.stayers + tally.ready < rules_.least_nodes()) {
        if (state_ == State::short_handed) return;
        enter(State::short_handed);
        waiting_began(now);
        deadline_ = now + rules_.join_timeout;
        say_to_all(Notice{progress_words(now), true});
        return;
    }
    if (now >= not_before_ && tally.silent_stayers == 0) return grant_round(now);
    enter(State::backing_off);
    if (now < not_before_) deadline_ = not_before_;
}

void Coordinator::no_replacement_came() {
    if (exit_code_of(cause_) != exit_code::group_lost) cause_.kind = CauseKind::never_formed;
    cause_.exit_code = exit_code::group_lost;
    cause_.words += "; no replacement came within " + seconds_text(rules_.join_timeout);
    if (decision_.charged) budget_.take_back();
    decision_ = {};
    end_with_cause();
}

void Coordinator::report_progress(TimePoint now) {
    progress_at_ = now + progress_every;
    const Notice notice{progress_words(now), false};
    for (const auto& [node, member] : members_) {
        if (!member.silent() && !member.dismissed) say(node, notice);
    }
}

std::string Coordinator::progress_words(TimePoint now) const {
    const MemberTable::Tally& tally = members_.tally();
    const int least = rules_.least_nodes();
    const std::string waited = seconds_text(now - *waiting_since_);
    if (state_ == State::short_handed) {
        return number(tally.stayers + tally.ready) + " of at least " + number(least) +
               " nodes are there; waiting for others since " + waited;
    }
    std::string words = number(tally.ready) + " of " + number(rules_.nodes) + " nodes joined";
    if (last_call_ends_) return words + "; starting in " + seconds_text(*last_call_ends_ - now);
    if (least < rules_.nodes) words += ", " + number(least) + " are enough";
    return words + "; missing since " + waited;
}

std::string Coordinator::names_of_members() const {
    constexpr int names_at_most = 8;
    std::string names;
    int named = 0;
    for (const auto& [node, member] : members_) {
        if (++named > names_at_most) continue;
        names += (named > 1 ? ", " : "") + member.offer.node_name;
    }
    if (named > names_at_most) names += " and " + number(named - names_at_most) + " more";
    return names;
}

// --- grants -------------------------------------------------------------------------------------

void Coordinator::grant_round(TimePoint now) {
    enter(State::running);
    round_started_ = now;
    step_committed_ = false;
    finished_and_left_ = 0;
    reports_.clear();
    std::set<int> held;
    for (const auto& [node, member] : members_) {
        if (member.seated && member.stays()) held.insert(member.node_rank);
    }
    for (int node : chosen_of_waiting(rules_.nodes - members_.tally().stayers)) {
        members_.update(node, [&](Member& member) {
            member.seated = true;
            // Of an older round: somebody else has had it since.
            if (held.contains(member.node_rank)) member.node_rank = -1;
        });
    }
    grant_ = {};
    grant_.round = ++round_;
    grant_.restart_count = round_ - 1;
    const std::vector<Placement> places = placements();
    take_places(places);
    grant_.digest = digest_of(places);
    for (const auto& [node, member] : members_) {
        if (member.seated) say_grant(node);
    }
    std::vector<int> spares;
    for (const auto& [node, member] : members_) {
        if (!member.seated) spares.push_back(node);
    }
    for (int node : spares) park(node);
}

// The nodes that take part next: who held a rank, whose wish is free, who came first.
std::vector<int> Coordinator::chosen_of_waiting(int room, bool resumed_only) const {
    if (room <= 0) return {};
    std::set<int> taken;
    for (const auto& [node, member] : members_) {
        if (member.seated && member.stays()) taken.insert(member.node_rank);
    }
    std::vector<std::tuple<bool, bool, std::uint64_t, int>> queue;
    for (const auto& [node, member] : members_) {
        if (member.seated || member.silent() || !member.stays()) continue;
        if (resumed_only && !member.resumed) continue;
        const int wish = member.offer.wished_node_rank;
        const bool fits = wish >= 0 && wish < rules_.nodes && !taken.contains(wish);
        queue.emplace_back(member.node_rank < 0, !fits, member.arrival, node);
    }
    std::sort(queue.begin(), queue.end());
    std::vector<int> chosen;
    for (std::size_t i = 0; i < queue.size() && i < static_cast<std::size_t>(room); ++i) {
        chosen.push_back(std::get<int>(queue[i]));
    }
    return chosen;
}

std::vector<Placement> Coordinator::placements() const {
    std::vector<RankOffer> offers;
    for (const auto& [node, member] : members_) {
        if (!member.seated) continue;
        const Join& offer = member.offer;
        offers.push_back({node, offer.slots, member.node_rank, offer.wished_node_rank,
                          offer.address, offer.node_name, offer.hosts_endpoint,
                          offer.topology_group});
    }
    return assign_ranks(std::move(offers));
}

void Coordinator::take_places(const std::vector<Placement>& placements) {
    for (const Placement& place : placements) {
        members_.update(place.node, [&](Member& member) {
            member.node_rank = place.node_rank;
            member.first_rank = place.first_rank;
            member.done = member.gone = member.parked = false;
        });
    }
    const Placement& first = placements.front();
    const Placement& last = placements.back();
    grant_.node_count = static_cast<int>(placements.size());
    grant_.world_size = last.first_rank + last.slots;
    grant_.master_addr = members_.find(first.node)->offer.address;
    grant_.master_port = members_.find(first.node)->offer.port;
}

void Coordinator::say_grant(int node) {
    RoundGranted grant = grant_;
    grant.node_rank = members_.find(node)->node_rank;
    grant.first_rank = members_.find(node)->first_rank;
    say(node, grant);
}

// The same on every node, so that a server that starts empty can tell whether
// those who come back were in one round.
std::uint64_t Coordinator::digest_of(const std::vector<Placement>& placements) const {
    std::uint64_t digest = fnv1a_basis;
    const auto mix = [&digest](std::string_view text) {
        digest = fnv1a_step(fnv1a(text, digest), 0x1ffu);
    };
    mix(number(grant_.round));
    for (const Placement& place : placements) {
        const Join& offer = members_.find(place.node)->offer;
        mix(offer.node_name);
        mix(number(offer.port));  // held by this agent: another one of this name has another
        mix(number(place.first_rank));
        mix(number(place.slots));
    }
    mix(grant_.master_addr);
    mix(number(grant_.master_port));
    return digest;
}

}  // namespace ddrun::rendezvous
