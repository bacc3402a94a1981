#include "tests/simulation/invariants.hpp"

#include <algorithm>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;
using rendezvous::Cause;
using rendezvous::CauseKind;

constexpr Duration kill_patience = 10s;
// The keeper's silence is noticed 5 s later; messages take a while.
constexpr Duration slack = 8s;
constexpr int wakes_that_are_too_many = 50;

std::string node_words(int node) {
    return "node " + std::to_string(node) + ": ";
}

}  // namespace

void Invariants::require(bool holds, const std::string& words) {
    if (!holds) throw Broken(words);
}

void Invariants::round_begins(int node, const rendezvous::RoundGranted& grant, TimePoint now) {
    NodeFacts& facts = nodes_[at(node)];
    const std::string words = node_words(node) + "round " + std::to_string(grant.round);
    require(grant.round > facts.last_round, words + " after " + std::to_string(facts.last_round));
    require(!facts.open_round, words + " begins while one is open");
    require(!facts.stopped_at, words + " begins after a stop");
    require(grant.restart_count == grant.round - 1, words + ": restart count");
    require(grant.restart_count <= scenario_.rules.max_restarts, words + ": over the budget");
    facts.last_round = grant.round;
    facts.open_round = grant.round;

    const auto& first = rounds_.try_emplace(grant.round, grant).first->second;
    require(first.world_size == grant.world_size && first.node_count == grant.node_count &&
                first.master_addr == grant.master_addr && first.master_port == grant.master_port,
            words + ": nodes were told different things");
    auto& placed = placements_[grant.round];
    require(
        placed.emplace(grant.node_rank, Placed{grant.first_rank, scenario_.slots[at(node)]}).second,
        words + ": a node rank twice");
    if (placed.size() == nodes_.size()) {
        int next = 0;
        for (const auto& [node_rank, place] : placed) {
            require(place.first_rank == next, words + ": ranks have a gap or overlap");
            next += place.slots;
        }
        require(next == grant.world_size, words + ": world size");
    }
    for (const Host* host : hosts_) {
        for (const auto& [pid, process] : host->processes()) {
            require(!process.alive || process.round == grant.round,
                    words + " begins beside a process of round " + std::to_string(process.round));
        }
    }
    (void)now;
}

void Invariants::round_ends(int node, int round) {
    NodeFacts& facts = nodes_[at(node)];
    require(facts.open_round == round, node_words(node) + "a round ends that was not open");
    facts.open_round.reset();
}

void Invariants::told_to_stop(int node, int signal, TimePoint now) {
    NodeFacts& facts = nodes_[at(node)];
    if (!facts.stopped_at) facts.stopped_at = now;
    facts.stop_signals.insert(signal);
    ++facts.stops;
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
    check_nothing_left(node, now);
    check_grace(node);
    check_restarts(node);
    require((finish.exit_code == 0) == !finish.cause, node_words(node) + "cause and code disagree");
    if (finish.exit_code == 0) {
        check_success();
    } else {
        check_cause(node, finish);
    }
}

void Invariants::check_nothing_left(int node, TimePoint now) const {
    for (const auto& [pid, process] : hosts_[at(node)]->processes()) {
        if (process.reaped) continue;
        const bool outlives_kill =
            process.alive && process.killed_at && now - *process.killed_at >= kill_patience;
        const bool ended_meanwhile = !process.alive && process.script.stuck.has_value();
        require(outlives_kill || ended_meanwhile,
                node_words(node) + "ends while process " + std::to_string(pid) + " is left");
    }
}

void Invariants::check_grace(int node) const {
    constexpr Duration delays = 1ms;
    const NodeFacts& facts = nodes_[at(node)];
    if (facts.stops > 1 || facts.shell_failed || facts.keeper_lost) return;
    for (const auto& [pid, process] : hosts_[at(node)]->processes()) {
        require(
            !process.grace_had || *process.grace_had + delays >= scenario_.group.shutdown_timeout,
            node_words(node) + "process " + std::to_string(pid) + " was killed too early");
    }
}

void Invariants::check_restarts(int node) const {
    const NodeFacts& facts = nodes_[at(node)];
    if (may_end_alone(facts)) return;
    const int restarts = rounds_.empty() ? 0 : rounds_.rbegin()->first - 1;
    require(facts.finish->restarts_used == restarts,
            node_words(node) + "tells " + std::to_string(facts.finish->restarts_used) +
                " restarts after " + std::to_string(restarts));
}

const Process* Invariants::worker_of_last_round(int rank) const {
    if (rounds_.empty()) return nullptr;
    for (const Host* host : hosts_) {
        if (const Process* found = host->worker(rounds_.rbegin()->first, rank)) return found;
    }
    return nullptr;
}

void Invariants::check_success() const {
    const rendezvous::RoundGranted& last = rounds_.rbegin()->second;
    for (int rank = 0; rank < last.world_size; ++rank) {
        const Process* worker = worker_of_last_round(rank);
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
            return check_worker_failed(cause);
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
            throw Broken("never_formed, but every node joined");
        case CauseKind::node_lost:
        case CauseKind::node_left:
        case CauseKind::membership:
            throw Broken("a node is named lost, but all are there");
    }
}

void Invariants::check_worker_failed(const Cause& cause) const {
    const std::string words =
        "rank " + std::to_string(cause.failure.rank) + " is named as cause, but ";
    const Process* worker = worker_of_last_round(cause.failure.rank);
    require(worker != nullptr && !worker->alive, words + "it has not ended");
    require(worker->end == cause.failure.status, words + "it ended with " + worker->end.describe() +
                                                     ", not " + cause.failure.status.describe());
    require(!worker->end.succeeded(), words + "it exited 0");
    require(!worker->told_by_ddrun || cause.failure.signalled_by_ddrun,
            words + "ddrun had signalled it");
    if (cause.failure.blamed_rank >= 0) check_blame(cause, *worker);
}

// A node that slept could not report in time.
void Invariants::check_blame(const Cause& cause, const Process& worker) const {
    const bool somebody_slept = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& facts) {
        return facts.slept > Duration::zero();
    });
    const Process* blamed = worker_of_last_round(cause.failure.blamed_rank);
    if (somebody_slept || blamed == nullptr || blamed == &worker) return;
    require(!blamed->failed_by_itself() || blamed->ended_at >= worker.ended_at || blamed->blames,
            "rank " + std::to_string(cause.failure.rank) + " is named as cause, but rank " +
                std::to_string(cause.failure.blamed_rank) + ", which it blames, failed before");
}

void Invariants::user_gives_up() const {
    const bool somebody_ended = std::any_of(
        nodes_.begin(), nodes_.end(), [](const auto& facts) { return facts.finish.has_value(); });
    // The group is not complete, or a node has left it by itself: nothing tells the coordinator of
    // a lost node yet.
    if (nodes_.size() > 1 && somebody_ended) return;
    for (const Host* host : hosts_) {
        for (const auto& [pid, process] : host->processes()) {
            if (process.alive && process.script.fate == WorkerScript::Fate::stands_still) return;
        }
    }
    throw Broken("the job stands, and no worker is to blame");
}

void Invariants::after_every_event(TimePoint now) const {
    std::set<int> living;
    for (const Host* host : hosts_) {
        for (const auto& [pid, process] : host->processes()) {
            if (!process.alive || process.is_helper) continue;
            require(living.insert(process.rank).second,
                    "rank " + std::to_string(process.rank) + " lives twice");
        }
    }
    const Duration bound = scenario_.group.shutdown_timeout + kill_patience + slack;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const NodeFacts& facts = nodes_[node];
        if (facts.finish || !facts.stopped_at) continue;
        require(now <= *facts.stopped_at + bound + facts.slept,
                node_words(static_cast<int>(node)) + "was told to stop and does not end");
    }
}

bool Invariants::may_end_alone(const NodeFacts& facts) const {
    if (facts.stopped_at || facts.keeper_lost || facts.shell_failed) return true;
    return facts.finish->cause && facts.finish->cause->kind == CauseKind::node_unfit;
}

void Invariants::at_the_end() const {
    std::optional<int> verdict;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const NodeFacts& facts = nodes_[node];
        const std::string words = node_words(static_cast<int>(node));
        require(facts.finish.has_value(), words + "never ended");
        if (may_end_alone(facts)) continue;
        if (!verdict) verdict = facts.finish->exit_code;
        require(*verdict == facts.finish->exit_code,
                words + "ends with " + std::to_string(facts.finish->exit_code) + ", another with " +
                    std::to_string(*verdict));
    }
}

}  // namespace ddrun::simulation
