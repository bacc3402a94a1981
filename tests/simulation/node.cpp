#include "tests/simulation/node.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace ddrun::simulation {
namespace {

using namespace launcher;

constexpr int signal_continue = 18;
constexpr int signal_terminal_stop = 20;
constexpr int signal_user_1 = 10;

bool stops(const SignalArrived& event) {
    const AgentRules rules;
    return std::count(rules.stop_signals.begin(), rules.stop_signals.end(), event.signal) > 0;
}

AgentRules rules_of(int number, const Scenario& scenario) {
    AgentRules rules;
    rules.group = scenario.group;
    rules.group.local_world_size = scenario.slots[static_cast<std::size_t>(number)];
    rules.node_name = "n" + std::to_string(number);
    rules.join.node_name = rules.node_name;
    rules.join.slots = rules.group.local_world_size;
    rules.join.address = "10.9.0." + std::to_string(number + 1);
    rules.join.port = 40000 + number;
    return rules;
}

}  // namespace

Node::Node(int number, Timeline& timeline, Scenario& scenario, Ties ties)
    : number_(number),
      timeline_(timeline),
      scenario_(scenario),
      ties_(std::move(ties)),
      agent_(rules_of(number, scenario)),
      host_(timeline, scenario,
            {[this](int round, GroupEvent event) {
                 if (round_ == round) feed(AgentEvent(std::move(event)));
             },
             ties_.worker_failed}) {}

void Node::start() {
    feed(AgentEvent(Started{}));
}

void Node::hear(const rendezvous::FromCoordinator& message) {
    feed(AgentEvent(message));
}

void Node::signal(int signal) {
    if (finished_) return;
    feed(AgentEvent(SignalArrived{signal, 1, 0, false}));
}

void Node::suffer(const Trouble& trouble) {
    if (finished_) return;
    switch (trouble.kind) {
        case Trouble::Kind::stop:
            return signal(trouble.signal);
        case Trouble::Kind::second_stop:
            signal(trouble.signal);
            return timeline_.in(trouble.lasts / 10, [=, this] { signal(trouble.signal); });
        case Trouble::Kind::stop_everybody:
            host_.foreign_signal(trouble.signal);
            return timeline_.in(scenario_.short_while(200'000),
                                [=, this] { signal(trouble.signal); });
        case Trouble::Kind::keeper_dies:
            invariants_->keeper_lost(number_);
            return host_.keeper_dies([this] { feed(AgentEvent(KeeperLost{"keeper died"})); });
        case Trouble::Kind::shell_fails:
            invariants_->shell_failed(number_);
            return feed(AgentEvent(ShellFailed{71, "no descriptors"}));
        case Trouble::Kind::usr1:
            return feed(AgentEvent(SignalArrived{signal_user_1, 1, 0, false}));
        case Trouble::Kind::ctrl_z:
            nap_ = trouble.lasts;
            return feed(AgentEvent(SignalArrived{signal_terminal_stop, 0, 0, true}));
    }
}

// --- events and time ----------------------------------------------------------------------------

void Node::feed(AgentEvent event) {
    if (finished_) return;
    events_.push_back(std::move(event));
    if (!handling_ && !asleep_) handle_all();
}

void Node::handle_all() {
    handling_ = true;
    while (!events_.empty() && !asleep_ && !finished_) {
        const AgentEvent event = std::move(events_.front());
        events_.pop_front();
        if (const auto* signal = std::get_if<SignalArrived>(&event); signal && stops(*signal)) {
            invariants_->told_to_stop(number_, signal->signal, timeline_.now());
        }
        perform(agent_.step(event, timeline_.now()));
    }
    handling_ = false;
    set_timer();
}

void Node::perform(const Agent::Actions& actions) {
    for (const AgentAction& action : actions) {
        std::visit([this](const auto& one) { act(one); }, action);
    }
}

void Node::set_timer() {
    const auto next = agent_.next_deadline();
    if (finished_ || asleep_ || next == timer_) return;
    timer_ = next;
    if (!next) return;
    timeline_.at(*next, [this, due = *next] {
        if (timer_ != due || finished_ || asleep_) return;
        timer_.reset();
        perform(agent_.advance_to(timeline_.now()));
        invariants_->woken(number_, agent_.next_deadline(), timeline_.now());
        handle_all();
    });
}

// Stopped by Ctrl-Z: nothing is handled until fg.
void Node::sleep_for(Duration time) {
    asleep_ = true;
    timer_.reset();
    invariants_->slept(number_, time);
    timeline_.in(time, [this] {
        asleep_ = false;
        events_.push_front(AgentEvent(SignalArrived{signal_continue, 0, 0, true}));
        handle_all();
    });
}

// --- actions ------------------------------------------------------------------------------------

void Node::act(const Say& action) {
    ties_.say(action.message);
}

void Node::act(const BeginRound& action) {
    ties_.trace("begins round " + std::to_string(action.grant.round));
    invariants_->round_begins(number_, action.grant, timeline_.now());
    grant_ = action.grant;
    round_ = action.grant.round;
}

void Node::act(const EndRound& action) {
    ties_.trace("round " + std::to_string(action.round) + " is closed");
    invariants_->round_ends(number_, action.round);
    round_.reset();
}

void Node::act(const SuspendSelf&) {
    sleep_for(nap_);
}

void Node::act(const Finish& action) {
    ties_.trace("ends with " + std::to_string(action.exit_code) +
                (action.cause ? ": " + action.cause->words : ""));
    finished_ = true;
    invariants_->finished(number_, action, timeline_.now());
}

void Node::act(const GroupAction& action) {
    std::visit([this](const auto& one) { act(one); }, action);
}

void Node::act(const StartWorkers&) {
    host_.start_round(grant_.round, grant_.first_rank,
                      scenario_.slots[static_cast<std::size_t>(number_)], grant_.world_size);
}

void Node::act(const SignalWorkers& action) {
    ties_.trace("signals " + std::to_string(action.local_ranks.size()) + " workers with " +
                std::to_string(action.signal));
    host_.signal_workers(action);
}

void Node::act(const TellWorkersAborted& action) {
    host_.tell_aborted(action.rank);
}

void Node::act(const KillTrees&) {
    ties_.trace("kills trees");
    host_.kill_trees(grant_.round);
}

void Node::act(const CleanUpAfter& action) {
    host_.clean_up(grant_.round, action.local_rank);
}

void Node::act(const InspectWorker& action) {
    host_.inspect(grant_.round, action.local_rank);
}

void Node::act(const SuspendWorkers& action) {
    host_.suspend(action.stop);
}

void Node::act(const Note& action) {
    ties_.trace("notes: " + action.words);
}

}  // namespace ddrun::simulation
