#include "tests/simulation/world.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;

constexpr int signal_terminate = 15;
constexpr int events_that_are_too_many = 200'000;

}  // namespace

World::World(std::uint64_t seed, bool trace)
    : scenario_(seed), trace_(trace), coordinator_(scenario_.rules) {
    std::vector<const Host*> hosts;
    for (int node = 0; node < scenario_.rules.nodes; ++node) {
        links_.push_back({Channel(timeline_), Channel(timeline_)});
        nodes_.push_back(std::make_unique<Node>(
            node, timeline_, scenario_,
            Node::Ties{[this, node](rendezvous::ToCoordinator message) {
                           to_coordinator(node, std::move(message));
                       },
                       [this](int round, int rank) {
                           for (auto& peer : nodes_) peer->peer_failed(round, rank);
                       },
                       [this, node](const std::string& words) {
                           if (trace_) this->trace("n" + std::to_string(node) + " " + words);
                       }}));
        hosts.push_back(&nodes_.back()->host());
    }
    invariants_.emplace(scenario_, hosts);
    for (auto& node : nodes_) node->watched_by(*invariants_);
    plan();
}

void World::plan() {
    for (auto& node : nodes_) {
        timeline_.in(scenario_.short_while(100'000), [&node] { node->start(); });
    }
    for (const Trouble& trouble : scenario_.troubles) {
        timeline_.in(trouble.when, [this, trouble] {
            if (trace_) {
                this->trace("trouble " + std::to_string(static_cast<int>(trouble.kind)) + " for n" +
                            std::to_string(trouble.node));
            }
            if (trouble.kind != Trouble::Kind::stop_everybody) {
                return nodes_[static_cast<std::size_t>(trouble.node)]->suffer(trouble);
            }
            for (auto& node : nodes_) node->suffer(trouble);
        });
    }
    timeline_.in(user_patience, [this] {
        invariants_->user_gives_up();
        for (auto& node : nodes_) node->signal(signal_terminate);
    });
}

void World::run() {
    for (int events = 0; !all_finished(); ++events) {
        if (timeline_.empty()) throw Broken("nothing will happen any more");
        if (events > events_that_are_too_many) throw Broken("the job does not come to rest");
        timeline_.next();
        invariants_->after_every_event(timeline_.now());
    }
    invariants_->at_the_end();
}

bool World::all_finished() const {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const auto& node) { return node->finished(); });
}

// --- messages -----------------------------------------------------------------------------------

Duration World::message_delay() {
    return scenario_.instant_messages ? Duration::zero() : scenario_.short_while(50'000);
}

void World::to_coordinator(int node, rendezvous::ToCoordinator message) {
    auto& link = links_[static_cast<std::size_t>(node)];
    link.up.send(message_delay(), [this, node, message = std::move(message)] {
        perform(coordinator_.step({node, message}, timeline_.now()));
    });
}

void World::perform(const rendezvous::Coordinator::Actions& answers) {
    if (trace_) trace("coordinator: " + coordinator_.describe());
    for (const rendezvous::NodeAnswer& answer : answers) {
        const auto node = static_cast<std::size_t>(answer.node);
        links_[node].down.send(message_delay(), [this, node, message = answer.message] {
            nodes_[node]->hear(message);
        });
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
    std::string lines = "coordinator: " + coordinator_.describe() + "\n";
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        lines += "n" + std::to_string(node) + ": " + nodes_[node]->describe() + "\n";
    }
    return lines;
}

}  // namespace ddrun::simulation
