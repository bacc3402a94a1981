#include "tests/simulation/world.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;
using Kind = Trouble::Kind;

constexpr int signal_terminate = 15;
constexpr int events_that_are_too_many = 2'000'000;
constexpr Duration verdict_patience = 10s;  // an embedded server's, for those who did not hear it

}  // namespace

World::World(std::uint64_t seed, const Plants& plants, bool trace)
    : scenario_(seed), plants_(plants), trace_(trace), coordinator_(scenario_.rules) {
    build_nodes();
    if (scenario_.cluster) build_cluster();
    if (scenario_.cluster) invariants_.saw("several nodes");
    plan();
}

void World::build_nodes() {
    const int count = static_cast<int>(scenario_.slots.size());
    for (int node = 0; node < count; ++node) {
        nodes_.push_back(std::make_unique<Node>(
            node, timeline_, scenario_, clock_of(machine_of(node)), plants_,
            Node::Ties{
                [this](rendezvous::ToCoordinator message) { to_coordinator(std::move(message)); },
                [this](int round, int rank) {
                    for (auto& peer : nodes_) peer->peer_failed(round, rank);
                },
                [this, node](const std::string& words) {
                    if (trace_) this->trace("n" + std::to_string(node) + " " + words);
                },
                [this, node] { node_ended(node); }}));
        invariants_.watch(nodes_.back()->host());
        nodes_.back()->watched_by(invariants_);
    }
}

void World::build_cluster() {
    const Cluster& cluster = *scenario_.cluster;
    network_.emplace(timeline_, scenario_);
    for (auto& node : nodes_) node->reach_server_through(*network_);
    const int machine = cluster.embedded ? 0 : machine_of_server;
    server_.emplace(timeline_, scenario_, clock_of(machine), *network_, plants_, machine,
                    trace_ ? Server::Trace([this](const std::string& words) { trace(words); })
                           : Server::Trace());
    if (!cluster.embedded) timeline_.in(cluster.server_starts, [this] { server_->start(); });
}

int World::machine_of(int node) const {
    if (!scenario_.cluster) return node;
    return scenario_.cluster->arrivals[static_cast<std::size_t>(node)].machine;
}

const Clock& World::clock_of(int machine) {
    const auto known = clocks_.find(machine);
    if (known != clocks_.end()) return known->second;
    if (!scenario_.cluster || !scenario_.cluster->clocks_differ) return clocks_[machine] = Clock();
    const auto offset = std::chrono::milliseconds(scenario_.number(-1'000'000, 1'000'000'000));
    return clocks_[machine] = Clock(offset, scenario_.number(-1000, 1000));
}

// --- what will happen ---------------------------------------------------------------------------

void World::plan() {
    plan_arrivals();
    for (const Trouble& trouble : scenario_.troubles) {
        note_grounds(trouble);
        timeline_.in(trouble.when, [this, trouble] {
            if (trace_) {
                this->trace("trouble " + std::to_string(static_cast<int>(trouble.kind)) + " for n" +
                            std::to_string(trouble.node) + ", " +
                            std::to_string(trouble.lasts / 1ms) + " ms");
            }
            happen(trouble);
        });
    }
    timeline_.in(scenario_.cluster ? users_patience_with_many : user_patience, [this] {
        invariants_.user_gives_up();
        for (auto& node : nodes_) node->signal(signal_terminate);
    });
}

void World::plan_arrivals() {
    arrivals_left_ = static_cast<int>(nodes_.size());
    for (int node = 0; node < arrivals_left_; ++node) {
        const Duration when = scenario_.cluster
                                  ? scenario_.cluster->arrivals[static_cast<std::size_t>(node)].when
                                  : scenario_.short_while(100'000);
        timeline_.in(when, [this, node] {
            --arrivals_left_;
            arrive(node);
        });
    }
}

// Nobody starts a node again when the job is over, or where its old agent still is.
void World::arrive(int node) {
    if (invariants_.verdict_is_known() || server_is_gone_for_ever_) return;
    for (int older = 0; older < node; ++older) {
        const Node& one = *nodes_[static_cast<std::size_t>(older)];
        if (machine_of(older) == machine_of(node) && one.started() && !one.ended()) return;
    }
    if (trace_)
        trace("n" + std::to_string(node) + " starts on " + std::to_string(machine_of(node)));
    if (scenario_.cluster && scenario_.cluster->embedded && machine_of(node) == 0) {
        server_host_ = node;
        server_->start();
    }
    nodes_[static_cast<std::size_t>(node)]->start();
}

void World::happen(const Trouble& trouble) {
    Node& node = *nodes_[static_cast<std::size_t>(trouble.node)];
    switch (trouble.kind) {
        case Kind::stop:
        case Kind::second_stop:
        case Kind::keeper_dies:
        case Kind::shell_fails:
        case Kind::usr1:
            return node.suffer(trouble);
        case Kind::stop_everybody:
            for (auto& one : nodes_) one->suffer(trouble);
            return;
        case Kind::ctrl_z:
        case Kind::agent_stopped:
            if (hosts_server(trouble.node)) server_->stall(trouble.lasts);
            return node.suffer(trouble);
        case Kind::power_off:
        case Kind::agent_killed:
            node.suffer(trouble);
            if (node.ended() && hosts_server(trouble.node)) {
                invariants_.server_ends();
                server_->end(trouble.kind == Kind::power_off);
            }
            return;
        case Kind::cut:
            return network_->cut(machine_of(trouble.node), trouble.lasts);
        case Kind::cut_all:
            for (std::size_t one = 0; one < nodes_.size(); ++one)
                network_->cut(machine_of(static_cast<int>(one)), trouble.lasts);
            return;
        case Kind::reset:
            return network_->reset(trouble.node);
        case Kind::reset_all:
            for (std::size_t one = 0; one < nodes_.size(); ++one)
                network_->reset(static_cast<int>(one));
            return;
        case Kind::server_crash:
            return crash_server(trouble);
        case Kind::server_stalls:
            return server_->stall(trouble.lasts);
    }
}

// An embedded server dies with its agent.
void World::crash_server(const Trouble& trouble) {
    if (scenario_.cluster->embedded) {
        if (server_host_ < 0) return;
        Trouble killed = trouble;
        killed.kind = Kind::agent_killed;
        killed.node = server_host_;
        return happen(killed);
    }
    invariants_.server_ends();
    server_->end(scenario_.one_in(4));
    if (trouble.lasts >= for_ever) {
        server_is_gone_for_ever_ = true;
        return;
    }
    timeline_.in(trouble.lasts, [this] { server_->start(); });
}

// Who may be called lost for this, though it comes back. Several troubles may add up.
void World::note_grounds(const Trouble& trouble) {
    if (!scenario_.cluster) return;
    const Cluster& cluster = *scenario_.cluster;
    const Duration margin = rendezvous::lease_margin(cluster.terms.lease);
    if (scenario_.troubles.size() > 1 || cluster.names_missing_one_in > 0) {
        invariants_.anyone_may_be_lost();
    }
    const bool hits_the_host = cluster.embedded && machine_of(trouble.node) == 0;
    switch (trouble.kind) {
        case Kind::stop:
        case Kind::second_stop:
        case Kind::shell_fails:
            // The server goes with its agent, in the end.
            if (hits_the_host) invariants_.anyone_may_be_lost();
            return;
        case Kind::reset:
        case Kind::reset_all:
            // Whoever waits for an answer to its hello is patient, and the connection may be dead.
            if (trouble.when < 1s) invariants_.anyone_may_be_lost();
            return;
        case Kind::stop_everybody:
        case Kind::usr1:
            return;
        case Kind::keeper_dies:
        case Kind::power_off:
        case Kind::agent_killed:
            if (hits_the_host) invariants_.server_forgets();
            if (hits_the_host) invariants_.anyone_may_be_lost();
            return invariants_.may_be_lost(trouble.node);
        case Kind::ctrl_z:
        case Kind::agent_stopped:
        case Kind::cut:
            if (trouble.lasts < margin) return;
            if (hits_the_host) invariants_.anyone_may_be_lost();
            return invariants_.may_be_lost(trouble.node);
        case Kind::cut_all:
            if (trouble.lasts >= margin) invariants_.anyone_may_be_lost();
            return;
        case Kind::server_crash: {
            invariants_.server_forgets();
            // Back before the grace ends, it is found by all within the recovery window.
            const bool is_found = cluster.terms.lease >= 15s && !cluster.embedded &&
                                  trouble.lasts < cluster.grace - 15s;
            if (!is_found) invariants_.anyone_may_be_lost();
            return;
        }
        case Kind::server_stalls:
            if (trouble.lasts >= cluster.grace - 15s) invariants_.anyone_may_be_lost();
            return;
    }
}

// --- the end ------------------------------------------------------------------------------------

bool World::hosts_server(int node) const {
    return node == server_host_;
}

void World::node_ended(int node) {
    if (hosts_server(node)) linger(node, timeline_.now());
}

// The agent that runs the server ends when all have heard the verdict.
void World::linger(int node, TimePoint since) {
    if (!hosts_server(node)) return;
    const Duration patience =
        server_->knows_a_verdict() ? verdict_patience : scenario_.group.shutdown_timeout + 25s;
    if (server_->idle() || timeline_.now() >= since + patience) {
        server_->end(false);
        server_host_ = -1;
        return;
    }
    timeline_.in(100ms, [=, this] { linger(node, since); });
}

void World::run() {
    for (int events = 0; !all_ended(); ++events) {
        if (timeline_.empty()) throw Broken("nothing will happen any more");
        if (events > events_that_are_too_many) throw Broken("the job does not come to rest");
        timeline_.next();
        invariants_.after_every_event(timeline_.now());
    }
    invariants_.at_the_end();
}

bool World::all_ended() const {
    return arrivals_left_ == 0 && std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
               return !node->started() || node->ended();
           });
}

// --- one node: its coordinator is in the same process -------------------------------------------

void World::to_coordinator(rendezvous::ToCoordinator message) {
    timeline_.in({}, [this, message = std::move(message)] {
        perform(coordinator_.step({0, message}, timeline_.now()));
    });
}

void World::perform(const rendezvous::Coordinator::Actions& answers) {
    if (trace_) trace("coordinator: " + coordinator_.describe());
    for (const rendezvous::NodeAnswer& answer : answers) {
        timeline_.in({}, [this, message = answer.message] { nodes_.front()->hear(message); });
    }
    set_coordinator_timer();
}

void World::set_coordinator_timer() {
    const auto next = coordinator_.next_deadline();
    if (next == coordinator_timer_) return;
    coordinator_timer_ = next;
    if (!next) return;
    timeline_.at(*next, [this, due = *next] {
        if (coordinator_timer_ != due) return;
        coordinator_timer_.reset();
        perform(coordinator_.advance_to(timeline_.now()));
    });
}

// --- words --------------------------------------------------------------------------------------

void World::trace(const std::string& words) const {
    const auto passed = std::chrono::duration<double>(timeline_.now() - started_).count();
    std::printf("%12.6f  %s\n", passed, words.c_str());
}

std::string World::describe() const {
    std::string lines =
        (server_ ? "server: " + server_->describe() : "coordinator: " + coordinator_.describe()) +
        "\n";
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        lines += "n" + std::to_string(node) + ": " + nodes_[node]->describe() + "\n";
    }
    return lines;
}

}  // namespace ddrun::simulation
