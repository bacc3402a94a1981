#include "tests/simulation/invariants.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;
using rendezvous::Cause;
using rendezvous::CauseKind;

constexpr Duration kill_patience = 10s;
// The keeper's silence is noticed 5 s later; messages take a while.
constexpr Duration slack = 8s;
constexpr Duration tolerance = 50ms;  // clocks, and small delays
constexpr int forgotten_run = -1;     // and below
constexpr int wakes_that_are_too_many = 50;

std::string node_words(int node) {
    return "node " + std::to_string(node) + ": ";
}

}  // namespace

void Invariants::require(bool holds, const std::string& words) {
    if (!holds) throw Broken(words);
}

std::string Invariants::name_of(int node) const {
    if (!scenario_.cluster) return "n" + std::to_string(node);
    return "n" + std::to_string(scenario_.cluster->arrivals[at(node)].machine);
}

// --- rounds -------------------------------------------------------------------------------------

void Invariants::round_begins(int node, const rendezvous::RoundGranted& grant, TimePoint) {
    NodeFacts& facts = nodes_[at(node)];
    const std::string words = node_words(node) + "round " + std::to_string(grant.round);
    require(grant.round > facts.last_round, words + " after " + std::to_string(facts.last_round));
    require(!facts.open_round, words + " begins while one is open");
    require(!facts.stopped_at, words + " begins after a stop");
    require(grant.restart_count == grant.round - 1, words + ": restart count");
    require(scenario_.cluster || grant.restart_count <= scenario_.rules.max_restarts,
            words + ": over the budget");
    require(!only_the_server_restarts_ || facts.last_round == 0 || may_restart_,
            words + " begins because the server restarted");
    facts.last_round = grant.round;
    facts.open_round = grant.round;
    if (grant.round > 1) saw("a later round");
    if (grant.round > 1 && facts.last_node_rank < 0) saw("a newcomer in a later round");
    facts.last_node_rank = grant.node_rank;

    facts.run = run_of(facts.run, grant, words);
    const RoundKey key{facts.run, grant.round};
    Round& round = rounds_[key];
    if (round.placed.empty()) round.grant = grant;
    check_told_the_same(round, grant, words);
    const Placed place{node, grant.first_rank, scenario_.slots[at(node)]};
    require(round.placed.emplace(grant.node_rank, place).second, words + ": a node rank twice");
    check_places(round, words);
    check_survivors(key, words);
    for (const auto& [run, running] : running_) {
        require(run != facts.run || running == grant.round,
                words + " begins beside a process of round " + std::to_string(running));
    }
}

// Whoever recovers a job may not know how far it was, where all who do are out of reach: then it
// counts the same rounds again. Nobody of the first count may run any more.
int Invariants::run_of(int run, const rendezvous::RoundGranted& grant, const std::string& words) {
    if (!scenario_.cluster) return run;
    const auto known = run_of_digest_.find(grant.digest);
    if (known != run_of_digest_.end()) return known->second;
    const Round* last = last_round(run);
    if (server_forgets_ && last != nullptr && last->grant.round >= grant.round) {
        for (const auto& [other, round] : running_) {
            require(other != run, words + " begins beside a process of round " +
                                      std::to_string(round) + ", which the server forgot");
        }
        run = forgotten_run - static_cast<int>(run_of_digest_.size());
    }
    run_of_digest_[grant.digest] = run;
    return run;
}

void Invariants::check_told_the_same(const Round& round, const rendezvous::RoundGranted& grant,
                                     const std::string& words) const {
    const auto& first = round.grant;
    require(first.world_size == grant.world_size && first.node_count == grant.node_count &&
                first.master_addr == grant.master_addr && first.master_port == grant.master_port &&
                first.digest == grant.digest,
            words + ": nodes were told different things");
}

void Invariants::check_places(const Round& round, const std::string& words) const {
    const auto& grant = round.grant;
    int end = 0;  // of those seen so far
    for (const auto& [node_rank, place] : round.placed) {
        require(node_rank >= 0 && node_rank < grant.node_count, words + ": node rank");
        require(place.first_rank >= end, words + ": ranks overlap");
        end = place.first_rank + place.slots;
        require(node_rank != 0 || !scenario_.cluster || grant.master_port - 40000 == place.node,
                words + ": rank 0 is not on the master's node");
    }
    require(end <= grant.world_size, words + ": more ranks than the world has");
    if (round.placed.size() < static_cast<std::size_t>(grant.node_count)) return;
    int next = 0;
    for (const auto& [node_rank, place] : round.placed) {
        require(place.first_rank == next, words + ": ranks have a gap");
        next += place.slots;
    }
    require(next == grant.world_size, words + ": world size");
}

void Invariants::check_survivors(RoundKey key, const std::string& words) const {
    const auto before = rounds_.find({key.first, key.second - 1});
    if (before == rounds_.end()) return;
    const Round& now = rounds_.at(key);
    const bool no_hole_closes = now.grant.node_count >= before->second.grant.node_count;
    std::map<int, int> was;  // node -> node rank
    for (const auto& [node_rank, place] : before->second.placed) was[place.node] = node_rank;
    int last = -1;
    for (const auto& [node_rank, place] : now.placed) {
        const auto found = was.find(place.node);
        if (found == was.end()) continue;
        require(found->second > last, words + ": those who stayed changed their order");
        last = found->second;
        require(!no_hole_closes || found->second == node_rank,
                words + ": n" + std::to_string(place.node) + " stayed and was renumbered from " +
                    std::to_string(found->second) + " to " + std::to_string(node_rank));
    }
}

void Invariants::changed(int node, const Process& process) {
    const int run = nodes_[at(node)].run;
    const RoundKey key{run, process.round};
    Round& round = rounds_[key];
    const int step = process.running ? 1 : -1;
    round.running += step;
    if (round.running == 0) running_.erase(key);
    if (round.running == 1 && step == 1) {
        running_.insert(key);
        for (const auto& [other_run, other] : running_) {
            require(other_run != run || other == process.round,
                    node_words(node) + "a process of round " + std::to_string(process.round) +
                        " runs beside one of round " + std::to_string(other));
        }
    }
    if (process.is_helper) return;
    int& of_rank = round.running_ranks[process.rank];
    of_rank += step;
    require(of_rank <= 1, "rank " + std::to_string(process.rank) + " runs twice");
}

StoreTruth& Invariants::store(int node, int round_number) {
    Round& round = rounds_.at({nodes_[at(node)].run, round_number});
    if (!round.store) {
        round.store.emplace("run " + std::to_string(nodes_[at(node)].run) + " round " +
                                std::to_string(round_number),
                            round.grant.world_size);
    }
    return *round.store;
}

void Invariants::round_ends(int node, int round) {
    NodeFacts& facts = nodes_[at(node)];
    require(facts.open_round == round, node_words(node) + "a round ends that was not open");
    facts.open_round.reset();
}

void Invariants::told_to_stop(int node, int signal, TimePoint now) {
    NodeFacts& facts = nodes_[at(node)];
    if (!facts.stopped_at) facts.stopped_at = now;
    stopping_.insert(node);
    facts.stop_signals.insert(signal);
    ++facts.stops;
}

void Invariants::slept(int node, Duration time) {
    nodes_[at(node)].slept += time;
}

void Invariants::woken(int node, std::optional<TimePoint> next, TimePoint now) {
    int& count = nodes_[at(node)].wakes_in_the_past;
    count = next && *next <= now ? count + 1 : 0;
    require(count < wakes_that_are_too_many, node_words(node) + "woken in the past for ever");
}

void Invariants::finished(int node, const launcher::Finish& finish, TimePoint now) {
    NodeFacts& facts = nodes_[at(node)];
    require(!facts.finish, node_words(node) + "ends twice");
    require(!facts.open_round, node_words(node) + "ends with a round open");
    facts.finish = finish;
    stopping_.erase(node);
    check_nothing_left(node, now);
    check_grace(node);
    check_restarts(node);
    require((finish.exit_code == 0) == !finish.cause, node_words(node) + "cause and code disagree");
    if (finish.exit_code == 0) {
        // Who was in no round does not know which of two counts of them it waited for.
        if (!server_forgets_ || facts.last_round > 0) check_success(facts.run);
        saw("success");
    } else {
        check_cause(node, finish);
    }
}

void Invariants::check_nothing_left(int node, TimePoint now) const {
    for (const auto& [pid, process] : hosts_[at(node)]->processes()) {
        if (process.reaped) continue;
        const bool outlives_kill = process.alive && process.killed_at &&
                                   now - *process.killed_at >= kill_patience - tolerance;
        const bool ended_meanwhile = !process.alive && process.script.stuck.has_value();
        require(outlives_kill || ended_meanwhile,
                node_words(node) + "ends while process " + std::to_string(pid) + " is left");
    }
}

void Invariants::check_grace(int node) const {
    const NodeFacts& facts = nodes_[at(node)];
    // Who slept may have been frozen by its keeper meanwhile.
    const bool slept = scenario_.cluster && facts.slept > Duration::zero();
    if (facts.stops > 1 || facts.shell_failed || facts.keeper_lost || facts.fenced || slept) return;
    for (const auto& [pid, process] : hosts_[at(node)]->processes()) {
        require(!process.grace_had ||
                    *process.grace_had + tolerance >= scenario_.group.shutdown_timeout,
                node_words(node) + "process " + std::to_string(pid) + " was killed too early");
    }
}

void Invariants::check_restarts(int node) const {
    const NodeFacts& facts = nodes_[at(node)];
    const int told = facts.finish->restarts_used;
    require(told <= scenario_.rules.max_restarts, node_words(node) + "restarts over the budget");
    if (may_end_alone(facts) || scenario_.cluster) return;
    const Round* last = last_round(facts.run);
    const int restarts = last == nullptr ? 0 : last->grant.round - 1;
    require(told == restarts, node_words(node) + "tells " + std::to_string(told) +
                                  " restarts after " + std::to_string(restarts));
}

const Invariants::Round* Invariants::last_round(int run) const {
    const Round* last = nullptr;
    for (const auto& [key, round] : rounds_) {
        if (key.first == run && !round.placed.empty()) last = &round;
    }
    return last;
}

const Process* Invariants::worker_of_last_round(int run, int rank) const {
    const Round* last = last_round(run);
    if (last == nullptr) return nullptr;
    for (const auto& [node_rank, place] : last->placed) {
        const Host& host = *hosts_[at(place.node)];
        if (const Process* found = host.worker(last->grant.round, rank)) return found;
    }
    return nullptr;
}

void Invariants::check_success(int run) const {
    const Round* last = last_round(run);
    require(last != nullptr, "success without a round");
    for (int rank = 0; rank < last->grant.world_size; ++rank) {
        const Process* worker = worker_of_last_round(run, rank);
        require(worker != nullptr && worker->reaped && worker->end.succeeded() &&
                    !worker->told_by_ddrun,
                "success, but rank " + std::to_string(rank) + " did not exit 0 by itself");
    }
}

void Invariants::check_cause(int node, const launcher::Finish& finish) const {
    const Cause& cause = *finish.cause;
    const auto any_node = [&](auto holds) {
        return std::any_of(nodes_.begin(), nodes_.end(), holds);
    };
    switch (cause.kind) {
        case CauseKind::worker_failed:
            return check_worker_failed(nodes_[at(node)].run, cause);
        case CauseKind::spawn_failed:
            return require(
                std::any_of(hosts_.begin(), hosts_.end(),
                            [](const Host* host) { return host->refused_starts() > 0; }) ||
                    any_node([](const NodeFacts& facts) { return facts.shell_failed; }),
                "spawn_failed, but no start was refused");
        case CauseKind::told_to_stop:
            return require(any_node([&](const NodeFacts& facts) {
                               return facts.stop_signals.contains(finish.exit_code - 128);
                           }),
                           node_words(node) + "ends with " + std::to_string(finish.exit_code) +
                               ", but nobody was told so");
        case CauseKind::keeper_lost:
            return require(any_node([](const NodeFacts& facts) { return facts.keeper_lost; }),
                           "keeper_lost, but all keepers live");
        case CauseKind::node_unfit:
        case CauseKind::hang:
        case CauseKind::early_exit:
            return;
        case CauseKind::never_formed:
            return require(scenario_.cluster.has_value(), "never_formed, but every node joined");
        case CauseKind::node_lost:
            return check_node_lost(cause, node_words(node));
        case CauseKind::node_left:
        case CauseKind::membership:
            return require(scenario_.cluster.has_value(), "a node left where there is one");
    }
}

void Invariants::check_node_lost(const Cause& cause, const std::string& words) const {
    require(scenario_.cluster.has_value(), words + "a node is lost where there is one");
    if (anyone_may_be_lost_) return;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const NodeFacts& facts = nodes_[node];
        if (name_of(static_cast<int>(node)) != cause.node_name) continue;
        if (facts.may_be_lost || facts.died || facts.finish || facts.keeper_lost) return;
    }
    throw Broken(words + "\"" + cause.words + "\", but it was not away for long");
}

void Invariants::check_worker_failed(int run, const Cause& cause) const {
    const std::string words =
        "rank " + std::to_string(cause.failure.rank) + " is named as cause, but ";
    const Process* worker = worker_of_last_round(run, cause.failure.rank);
    require(worker != nullptr && !worker->alive, words + "it has not ended");
    require(worker->end == cause.failure.status, words + "it ended with " + worker->end.describe() +
                                                     ", not " + cause.failure.status.describe());
    require(!worker->end.succeeded(), words + "it exited 0");
    require(!worker->told_by_ddrun || cause.failure.signalled_by_ddrun,
            words + "ddrun had signalled it");
    if (cause.failure.blamed_rank >= 0) check_blame(run, cause, *worker);
}

// A node that slept could not report in time.
void Invariants::check_blame(int run, const Cause& cause, const Process& worker) const {
    // Reports that come too late are no evidence.
    if (scenario_.cluster &&
        (!scenario_.troubles.empty() || scenario_.cluster->slow_message_us > 100'000))
        return;
    const bool somebody_slept = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& facts) {
        return facts.slept > Duration::zero();
    });
    const Process* blamed = worker_of_last_round(run, cause.failure.blamed_rank);
    if (somebody_slept || blamed == nullptr || blamed == &worker) return;
    require(!blamed->failed_by_itself() || blamed->ended_at >= worker.ended_at || blamed->blames,
            "rank " + std::to_string(cause.failure.rank) + " is named as cause, but rank " +
                std::to_string(cause.failure.blamed_rank) + ", which it blames, failed before");
}

void Invariants::user_gives_up() {
    user_gave_up_ = true;
    for (const Host* host : hosts_) {
        for (const auto& [pid, process] : host->processes()) {
            if (process.alive && process.script.fate == WorkerScript::Fate::stands_still) return;
        }
    }
    throw Broken("the job stands, and no worker is to blame");
}

void Invariants::after_every_event(TimePoint now) const {
    const Duration bound = scenario_.group.shutdown_timeout + kill_patience + slack;
    for (const int node : stopping_) {
        const NodeFacts& facts = nodes_[at(node)];
        require(facts.died || now <= *facts.stopped_at + bound + facts.slept,
                node_words(node) + "was told to stop and does not end");
    }
}

// --- what the server says -----------------------------------------------------------------------

void Invariants::server_said(int node, const rendezvous::FromServer& message) {
    NodeFacts& facts = nodes_[at(node)];
    if (const auto* welcome = std::get_if<rendezvous::NodeWelcome>(&message)) {
        if (welcome->present_keys) saw("the server was rebuilt");
        if (std::exchange(facts.welcomed, true) && facts.last_round > 0) return;
        const int next = static_cast<int>(runs_.size());
        facts.run = runs_.emplace(welcome->job_incarnation, next).first->second;
    }
    if (const auto* refused = std::get_if<rendezvous::NodeRefused>(&message)) {
        if (!refused->retry_later) facts.refused = true;
    }
    const auto* payload = std::get_if<rendezvous::FromServerPayload>(&message);
    const auto* said =
        payload != nullptr ? std::get_if<rendezvous::FromCoordinator>(&payload->payload) : nullptr;
    if (said == nullptr) return;
    if (const auto* verdict = std::get_if<rendezvous::Verdict>(said)) {
        if (!facts.verdict) facts.verdict = *verdict;
        const bool is_its_own =
            facts.stopped_at || facts.keeper_lost || facts.shell_failed || facts.last_round == 0;
        if (!is_its_own) verdict_is_known_ = true;
    }
    if (const auto* stop = std::get_if<rendezvous::StopRound>(said)) {
        if (is_about_workers(stop->cause.kind)) may_restart_ = true;
        if (stop->cause.kind == CauseKind::node_left) saw("a node left and the job went on");
        if (stop->cause.kind == CauseKind::membership) saw("the group formed anew for a newcomer");
        if (stop->cause.kind == CauseKind::node_lost) {
            saw("a node was lost");
            check_node_lost(stop->cause, node_words(node) + "is told: ");
        }
    }
}

bool Invariants::may_end_alone(const NodeFacts& facts) const {
    if (facts.stopped_at || facts.keeper_lost || facts.shell_failed || facts.died) return true;
    if (facts.finish && facts.finish->cause && facts.finish->cause->kind == CauseKind::node_unfit)
        return true;
    if (!scenario_.cluster) return false;
    if (facts.refused || facts.last_round == 0) return true;
    const bool heard_the_verdict = facts.verdict && facts.finish &&
                                   facts.verdict->cause == facts.finish->cause.value_or(Cause());
    return !heard_the_verdict && (facts.may_be_lost || anyone_may_be_lost_);
}

void Invariants::at_the_end() const {
    const bool somebody_was_away = std::any_of(nodes_.begin(), nodes_.end(),
                                               [](const auto& facts) { return facts.may_be_lost; });
    const bool may_be_forgotten = verdict_is_forgotten_ || (server_forgets_ && somebody_was_away);
    std::map<int, const launcher::Finish*> verdicts;  // by run
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const NodeFacts& facts = nodes_[node];
        const std::string words = node_words(static_cast<int>(node));
        if (facts.died || !facts.started) continue;
        require(facts.finish.has_value(), words + "never ended");
        if (may_end_alone(facts) || may_be_forgotten) continue;
        const auto* first = verdicts.emplace(facts.run, &*facts.finish).first->second;
        require(first->exit_code == facts.finish->exit_code,
                words + "ends with " + std::to_string(facts.finish->exit_code) + ", another with " +
                    std::to_string(first->exit_code));
        require(first->cause == facts.finish->cause,
                words + "names another cause: " +
                    (facts.finish->cause ? facts.finish->cause->words : ""));
    }
}

}  // namespace ddrun::simulation
