#include "rendezvous/core/job_service.hpp"

#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/node_codec.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t most_unheard = 200'000;  // payloads of a node that takes nothing
constexpr std::size_t most_expelled = 100'000;

std::string seconds_of(Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
           "ms";
}

std::string list_of(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text.empty() ? "none" : text;
}

std::string nodes_of(const JobTerms& terms) {
    const std::string most = std::to_string(terms.max_nodes);
    return terms.min_nodes == terms.max_nodes ? most : std::to_string(terms.min_nodes) + ":" + most;
}

// Flag and value, in the order of the command line's table.
std::vector<std::pair<std::string, std::string>> in_words(const JobTerms& terms) {
    return {{"nnodes", nodes_of(terms)},
            {"spares", std::to_string(terms.spares)},
            {"max-restarts", std::to_string(terms.max_restarts)},
            {"no-restart-on", list_of(terms.no_restart_on)},
            {"restart-backoff", seconds_of(terms.restart_backoff)},
            {"crash-loop", std::to_string(terms.crash_loop)},
            {"join-timeout", seconds_of(terms.join_timeout)},
            {"last-call", seconds_of(terms.last_call)},
            {"heartbeat", seconds_of(terms.heartbeat)},
            {"lease", seconds_of(terms.lease)}};
}

}  // namespace

JobService::JobService(ServiceSettings settings) : settings_(std::move(settings)) {}

JobService::Actions JobService::step(const ServiceEvent& event, TimePoint now) {
    std::visit([&](const auto& one) { on(one, now); }, event);
    return std::exchange(out_, {});
}

JobService::Actions JobService::advance_to(TimePoint now) {
    for (const int node : membership_.lost_by(now)) {
        const bool closed = nodes_[node].connection == 0;
        lose(node,
             closed ? "its connection ended and it did not come back"
                    : "nothing was heard of it for " + seconds_of(terms_->lease),
             false, false, now);
    }
    if (recovery_ends_ && *recovery_ends_ <= now) close_recovery(now);
    if (coordinator_) perform(coordinator_->advance_to(now), now);
    perform(store_.advance_to(now));
    return std::exchange(out_, {});
}

std::optional<TimePoint> JobService::next_deadline() const {
    std::optional<TimePoint> first = membership_.next_deadline();
    const auto add = [&](std::optional<TimePoint> other) {
        if (other) first = std::min(first.value_or(*other), *other);
    };
    add(recovery_ends_);
    if (coordinator_) add(coordinator_->next_deadline());
    add(store_.next_deadline());
    return first;
}

// --- events -------------------------------------------------------------------------------------

void JobService::on(const PeerSaid& event, TimePoint now) {
    if (const auto* hello = std::get_if<NodeHello>(&event.message)) {
        return greet(event.connection, *hello, now);
    }
    if (const auto* obituary = std::get_if<Obituary>(&event.message)) {
        return said(-1, *obituary, now);
    }
    const auto found = by_connection_.find(event.connection);
    if (found == by_connection_.end()) return;
    const int node = found->second;
    if (membership_.heard(node, now)) {
        tell_coordinator(NodeSuspect{node, false}, now);
    }
    std::visit([&](const auto& message) { said(node, message, now); }, event.message);
}

void JobService::on(const PeerGone& event, TimePoint now) {
    const auto found = by_connection_.find(event.connection);
    if (found == by_connection_.end()) return;
    const int node = found->second;
    by_connection_.erase(found);
    nodes_[node].connection = 0;
    if (!membership_.closed(node, now)) return;
    tell_coordinator(NodeSuspect{node, true}, now);
}

void JobService::on(const ServerWasSlow& event, TimePoint) {
    membership_.was_slow(event.time);
    if (recovery_ends_) *recovery_ends_ += event.time;
}

// --- hello --------------------------------------------------------------------------------------

void JobService::greet(ConnectionId connection, const NodeHello& hello, TimePoint now) {
    somebody_came_ = true;
    if (auto refused = refusal(hello)) return refuse(connection, std::move(*refused));
    const auto known = by_incarnation_.find(hello.node_incarnation);
    if (known != by_incarnation_.end()) return resume(known->second, connection, hello, now);
    if (const std::string words = mismatch(hello); !words.empty()) {
        refuse(connection, {exit_code::not_authorised, false, words});
        // While the group forms nobody can know who is wrong.
        if (coordinator_ && coordinator_->round() == 0) end_all_because(words);
        return;
    }
    if (!hello.job_incarnation.empty()) return recover(connection, hello, now);
    const int node = take_in(connection, hello, now);
    welcome(node, false);
    warn_of_another_command(hello);
    tell_coordinator(NodeMessage{node, hello.offer}, now);
}

std::optional<NodeRefused> JobService::refusal(const NodeHello& hello) const {
    const Versions ours;
    if (!common_version(ours, {hello.oldest, hello.newest})) {
        return NodeRefused{exit_code::not_authorised, false,
                           version_refusal(hello, ours, settings_.build)};
    }
    if (hello.terms.job_id != settings_.job_id) {
        return NodeRefused{exit_code::not_authorised, false,
                           "this endpoint serves job '" + settings_.job_id + "', you asked for '" +
                               hello.terms.job_id + "' (--rdzv-id)"};
    }
    const auto expelled = expelled_.find(hello.node_incarnation);
    if (expelled != expelled_.end()) {
        return NodeRefused{exit_code::group_lost, false, expelled->second};
    }
    const bool is_fresh = hello.job_incarnation.empty();
    if (by_incarnation_.contains(hello.node_incarnation)) return std::nullopt;
    if (is_fresh && coordinator_ && (coordinator_->is_over() || coordinator_->is_closing())) {
        return NodeRefused{exit_code::group_lost, true,
                           "the previous run of job '" + settings_.job_id + "' is still closing"};
    }
    // Where no round was granted yet, whoever comes back brings its job with it.
    if (is_fresh || !coordinator_ || recovery_ends_ || coordinator_->round() == 0) {
        return std::nullopt;
    }
    if (hello.job_incarnation != settings_.incarnation) {
        return NodeRefused{exit_code::group_lost, false,
                           "another run of job '" + settings_.job_id + "' is under way here"};
    }
    return NodeRefused{exit_code::group_lost, false,
                       "node " + hello.offer.node_name + " is no longer part of this job"};
}

std::string JobService::mismatch(const NodeHello& hello) const {
    const std::string& name = hello.offer.node_name;
    if (terms_ && *terms_ != hello.terms) {
        const auto theirs = in_words(hello.terms), ours = in_words(*terms_);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            if (ours[i] == theirs[i]) continue;
            return "node " + name + " has " + theirs[i].first + "=" + theirs[i].second + ", node " +
                   terms_from_ + " has " + ours[i].first + "=" + ours[i].second +
                   "; give all nodes the same";
        }
    }
    const std::string& nccl = hello.offer.nccl_version;
    if (!nccl.empty() && !nccl_version_.empty() && nccl != nccl_version_) {
        return "node " + name + " has NCCL " + nccl + ", node " + nccl_from_ + " has NCCL " +
               nccl_version_ + "; they do not talk to each other";
    }
    return {};
}

void JobService::refuse(ConnectionId connection, NodeRefused refusal) {
    say(connection, std::move(refusal));
    out_.push_back(ClosePeer{connection});
}

void JobService::end_all_because(const std::string& words) {
    const NodeRefused refused{exit_code::not_authorised, false, words};
    std::vector<int> all;
    for (const auto& [node, entry] : nodes_) all.push_back(node);
    for (const int node : all) {
        if (nodes_[node].connection != 0) refuse(nodes_[node].connection, refused);
        forget(node);
    }
    coordinator_.reset();
    terms_.reset();
}

JobRules JobService::rules() const {
    JobRules rules = job_rules(*terms_);
    rules.jitter_seed = settings_.jitter_seed;
    return rules;
}

int JobService::take_in(ConnectionId connection, const NodeHello& hello, TimePoint now) {
    if (!terms_) {
        terms_ = hello.terms;
        terms_from_ = hello.offer.node_name;
        command_digest_ = hello.offer.command_digest;
        membership_.set_rules({hello.terms.lease, std::chrono::seconds(5)});
    }
    if (!coordinator_ && !recovery_ends_) {
        coordinator_.emplace(rules());
    }
    if (nccl_version_.empty()) {
        nccl_version_ = hello.offer.nccl_version;
        nccl_from_ = hello.offer.node_name;
    }
    const int node = ++last_node_;
    Node& entry = nodes_[node];
    entry.hello = hello;
    entry.connection = connection;
    by_incarnation_[hello.node_incarnation] = node;
    by_connection_[connection] = node;
    membership_.joined(node, now);
    return node;
}

void JobService::resume(int node, ConnectionId connection, const NodeHello& hello, TimePoint now) {
    Node& entry = nodes_[node];
    if (entry.connection != 0 && entry.connection != connection) {
        by_connection_.erase(entry.connection);
        out_.push_back(ClosePeer{entry.connection});
    }
    entry.connection = connection;
    entry.hello.standing = hello.standing;
    by_connection_[connection] = node;
    const bool was_suspect = membership_.heard(node, now);
    // Before it has presented itself here, what it has heard was another server's.
    if (!entry.presenting) entry.outbox.heard(hello.heard);
    welcome(node, entry.presenting);
    if (!entry.presenting) resend(node);
    if (!was_suspect) return;
    tell_coordinator(NodeSuspect{node, false}, now);
}

// A node of a job that this server does not know: another server, which is gone, did.
void JobService::recover(ConnectionId connection, const NodeHello& hello, TimePoint now) {
    const bool first = !recovery_ends_;
    if (first && coordinator_ && coordinator_->round() > 0) {
        return refuse(connection, {exit_code::group_lost, false,
                                   "another run of job '" + settings_.job_id + "' runs here"});
    }
    if (!first && hello.job_incarnation != settings_.incarnation) {
        return refuse(connection,
                      {exit_code::group_lost, false,
                       "this server recovers another run of job '" + settings_.job_id + "'"});
    }
    const Standing& standing = hello.standing;
    const bool same_round = coordinator_ && !first && standing.grant.round == coordinator_->round();
    if (same_round && standing.grant.digest != coordinator_->digest()) {
        return refuse(connection, {exit_code::group_lost, false,
                                   "this node's round is not that of the others"});
    }
    if (first) {
        settings_.incarnation = hello.job_incarnation;
        recovery_ends_ = now + hello.terms.lease;
    }
    const int node = take_in(connection, hello, now);
    nodes_[node].presenting = true;
    if (first) {
        // Whoever came before is a newcomer of this job.
        std::vector<std::pair<int, Join>> newcomers;
        for (const auto& [other, entry] : nodes_) {
            if (other != node) newcomers.emplace_back(other, entry.hello.offer);
        }
        coordinator_.emplace(Coordinator::restore(rules(), {{node, hello.offer, standing}}, now));
        store_.recover(standing.grant.round, standing.grant.world_size);
        welcome(node, true);
        for (const auto& [other, offer] : newcomers) {
            tell_coordinator(NodeMessage{other, offer}, now);
            hang_up(other, now);
        }
        perform(coordinator_->advance_to(now), now);
        return;
    }
    if (standing.grant.round > store_.round()) {
        store_.recover(standing.grant.round, standing.grant.world_size);
    }
    welcome(node, true);
    tell_coordinator(Presented{node, hello.offer, standing}, now);
}

// It comes back at once, and is welcomed to the job that it is a member of now.
void JobService::hang_up(int node, TimePoint now) {
    Node& entry = nodes_[node];
    if (entry.connection == 0) return;
    out_.push_back(ClosePeer{entry.connection});
    by_connection_.erase(entry.connection);
    entry.connection = 0;
    if (membership_.closed(node, now)) tell_coordinator(NodeSuspect{node, true}, now);
}

void JobService::welcome(int node, bool present_keys) {
    const Node& entry = nodes_[node];
    NodeWelcome welcome;
    welcome.version =
        common_version({}, {entry.hello.oldest, entry.hello.newest}).value_or(newest_node_protocol);
    welcome.job_incarnation = settings_.incarnation;
    welcome.heard = entry.inbox.last();
    welcome.present_keys = present_keys;
    say(entry.connection, welcome);
}

void JobService::warn_of_another_command(const NodeHello& hello) {
    // Once is enough: where all differ, thousands of lines for each of thousands would say no more.
    if (hello.offer.command_digest == command_digest_ || told_of_commands_) return;
    told_of_commands_ = true;
    tell_all(
        {"node " + hello.offer.node_name + " runs another command than node " + terms_from_, true});
}

// --- what nodes say -----------------------------------------------------------------------------

void JobService::said(int, const NodeHello&, TimePoint) {}

void JobService::said(int node, const Heartbeat& heartbeat, TimePoint now) {
    Node& entry = nodes_[node];
    if (!entry.presenting) {
        entry.outbox.heard(heartbeat.heard);
        if (std::exchange(entry.repeating, false) && all_presented()) close_recovery(now);
    }
    HeartbeatSeen seen;
    seen.number = heartbeat.number;
    seen.heard = entry.inbox.last();
    if (recovery_ends_) {
        seen.round = round_not_known;
    } else {
        seen.round = coordinator_ ? coordinator_->round_of(node) : 0;
    }
    say(entry.connection, seen);
}

void JobService::said(int node, const FromNodePayload& payload, TimePoint now) {
    Node& entry = nodes_[node];
    entry.outbox.heard(payload.heard);
    if (!entry.inbox.accept(payload.sequence)) return;
    std::visit([&](const auto& one) { take(node, one, now); }, payload.payload);
}

void JobService::said(int node, const PresentKeys& keys, TimePoint) {
    Node& entry = nodes_[node];
    if (!entry.presenting) return;
    store_.present(keys);
    if (!keys.last) return;
    entry.presenting = false;
    entry.repeating = true;
    resend(node);
}

void JobService::said(int node, const Goodbye&, TimePoint now) {
    const ConnectionId connection = nodes_[node].connection;
    lose(node, "it said goodbye", true, true, now);
    out_.push_back(ClosePeer{connection});
}

void JobService::said(int, const Obituary& obituary, TimePoint now) {
    for (const auto& [node, entry] : nodes_) {
        if (entry.hello.obituary_token != obituary.token) continue;
        return lose(node, "its agent died", false, true, now);
    }
}

void JobService::take(int node, const ToCoordinator& message, TimePoint now) {
    Node& entry = nodes_[node];
    std::visit(
        [&](const auto& one) {
            using Message = std::decay_t<decltype(one)>;
            if constexpr (std::is_same_v<Message, RoundGone> || std::is_same_v<Message, NodeDone>) {
                entry.clear_round = std::max(entry.clear_round, one.round);
            }
            if constexpr (std::is_same_v<Message, Leave>) entry.leaving = true;
        },
        message);
    tell_coordinator(NodeMessage{node, message}, now);
}

void JobService::take(int node, const StoreAsked& asked, TimePoint now) {
    perform(store_.ask(node, asked, now));
}

void JobService::take(int, const StoreForgotten& forgotten, TimePoint) {
    store_.forget(forgotten.round, forgotten.rank);
}

// --- losses -------------------------------------------------------------------------------------

void JobService::lose(int node, std::string words, bool announced, bool proven, TimePoint now) {
    const Node& entry = nodes_[node];
    NodeLost lost{node, std::move(words), announced || entry.leaving, now};
    const int round = coordinator_ ? coordinator_->round_of(node) : 0;
    const bool clear = proven || round == 0 || entry.clear_round == round;
    if (!clear) lost.fenced_by = membership_.fenced_by(node);
    if (!proven && expelled_.size() < most_expelled) {
        expelled_[entry.hello.node_incarnation] = "node " + entry.hello.offer.node_name +
                                                  " was expelled from round " +
                                                  std::to_string(round) + ": " + lost.words;
    }
    if (entry.connection != 0) {
        by_connection_.erase(entry.connection);
        if (!proven) out_.push_back(ClosePeer{entry.connection});
    }
    forget(node);
    tell_coordinator(lost, now);
    if (recovery_ends_ && all_presented()) close_recovery(now);
}

void JobService::forget(int node) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return;
    by_incarnation_.erase(found->second.hello.node_incarnation);
    by_connection_.erase(found->second.connection);
    membership_.forget(node);
    nodes_.erase(found);
}

// --- recovery -----------------------------------------------------------------------------------

bool JobService::all_presented() const {
    if (!coordinator_ || coordinator_->absent_count() > 0) return false;
    return std::none_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
        return entry.second.presenting || entry.second.repeating;
    });
}

void JobService::close_recovery(TimePoint now) {
    if (!std::exchange(recovery_ends_, std::nullopt)) return;
    for (auto& [node, entry] : nodes_) {
        if (std::exchange(entry.presenting, false)) resend(node);
    }
    // Nobody else may know what their workers wrote. The round ends with them.
    const std::vector<int> absent_nodes = coordinator_->absent_nodes();
    if (!absent_nodes.empty()) perform(store_.lose("a node was lost with a part of the store"));
    perform(store_.end_recovery(now));
    for (const int absent : absent_nodes) {
        tell_coordinator(
            NodeLost{absent, "it did not come back to the rendezvous that was rebuilt", false, now},
            now);
    }
}

// --- the coordinator's answers ------------------------------------------------------------------

void JobService::tell_coordinator(const CoordinatorEvent& event, TimePoint now) {
    if (coordinator_) perform(coordinator_->step(event, now), now);
}

void JobService::perform(const Coordinator::Actions& answers, TimePoint) {
    for (const NodeAnswer& answer : answers) {
        if (const auto* grant = std::get_if<RoundGranted>(&answer.message)) {
            if (store_.round() != grant->round) store_.begin(grant->round, grant->world_size);
        } else if (const auto* stop = std::get_if<StopRound>(&answer.message)) {
            if (stop->round == store_.round()) perform(store_.abort(stop->cause.words));
        }
        if (const auto* verdict = std::get_if<Verdict>(&answer.message)) {
            if (coordinator_->is_over()) verdict_ = *verdict;
        }
        tell(answer.node, answer.message);
    }
}

void JobService::perform(RoundStore::Actions answers) {
    for (RoundStore::Answer& answer : answers) tell(answer.node, std::move(answer.answered));
}

void JobService::tell(int node, FromJob payload) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return;
    Node& entry = found->second;
    if (entry.outbox.size() > most_unheard) return;
    const std::uint64_t sequence = entry.outbox.put(payload);
    if (!entry.presenting) send(node, sequence, payload);
}

void JobService::tell_all(const Notice& notice) {
    for (const auto& [node, entry] : nodes_) tell(node, FromCoordinator(notice));
}

void JobService::resend(int node) {
    nodes_[node].outbox.resend(
        [&](std::uint64_t sequence, const FromJob& payload) { send(node, sequence, payload); });
}

void JobService::send(int node, std::uint64_t sequence, const FromJob& payload) {
    const Node& entry = nodes_[node];
    if (entry.connection == 0) return;
    say(entry.connection, FromServerPayload{sequence, entry.inbox.last(), payload});
}

void JobService::say(ConnectionId connection, FromServer message) {
    out_.push_back(SendToPeer{connection, std::move(message)});
}

// --- for the shell ------------------------------------------------------------------------------

bool JobService::forgettable() const {
    return somebody_came_ && nodes_.empty();
}

JobStatus JobService::status(TimePoint now) const {
    JobStatus status;
    status.job_id = settings_.job_id;
    status.incarnation = settings_.incarnation;
    status.state = "new";
    if (!coordinator_) return status;
    status.state = recovery_ends_ ? "recovering" : std::string(coordinator_->state_name());
    status.round = coordinator_->round();
    status.world_size = coordinator_->world_size();
    status.restarts_used = coordinator_->restarts_used();
    status.max_restarts = coordinator_->rules().max_restarts;
    if (verdict_) status.exit_code = verdict_->exit_code;
    for (const MemberStatus& member : coordinator_->members()) {
        NodeStatus node{member.name,  {}, member.node_rank, member.first_rank, member.slots,
                        member.state, {}};
        const auto found = nodes_.find(member.node);
        if (found != nodes_.end()) {
            node.address = found->second.hello.offer.address;
            node.silent_for = now - membership_.last_heard(member.node);
        }
        status.nodes.push_back(std::move(node));
    }
    return status;
}

std::string JobService::describe() const {
    std::string line = coordinator_ ? coordinator_->describe() : "nobody yet";
    if (recovery_ends_) line += ", recovering";
    return line;
}

}  // namespace ddrun::rendezvous
