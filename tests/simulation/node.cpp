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
constexpr int last_free_port = 40000;

bool stops(const SignalArrived& event) {
    const AgentRules rules;
    return std::count(rules.stop_signals.begin(), rules.stop_signals.end(), event.signal) > 0;
}

// Whoever is started again on a machine has its name and address.
int machine_of(int number, const Scenario& scenario) {
    if (!scenario.cluster) return number;
    return scenario.cluster->arrivals[static_cast<std::size_t>(number)].machine;
}

AgentRules rules_of(int number, const Scenario& scenario) {
    const int machine = machine_of(number, scenario);
    AgentRules rules;
    rules.group = scenario.group;
    rules.group.local_world_size = scenario.slots[static_cast<std::size_t>(number)];
    rules.node_name = "n" + std::to_string(machine);
    rules.join.node_name = rules.node_name;
    rules.join.slots = rules.group.local_world_size;
    rules.join.address = "10.9.0." + std::to_string(machine + 1);
    rules.join.port = last_free_port + number;
    if (scenario.cluster) {
        const Arrival& arrival = scenario.cluster->arrivals[static_cast<std::size_t>(number)];
        rules.join.wished_node_rank = arrival.wished_rank;
        rules.join.hosts_endpoint = scenario.cluster->embedded && machine == 0;
    }
    return rules;
}

std::string words_of(const rendezvous::ToCoordinator& message) {
    struct {
        std::string operator()(const rendezvous::Join&) const { return "join"; }
        std::string operator()(const rendezvous::FailureReport& report) const {
            return "failure of round " + std::to_string(report.round) + ": " + report.cause.words;
        }
        std::string operator()(const rendezvous::RoundGone& gone) const {
            return "gone, round " + std::to_string(gone.round);
        }
        std::string operator()(const rendezvous::NodeDone& done) const {
            return "done, round " + std::to_string(done.round);
        }
        std::string operator()(const rendezvous::StepCommitted& step) const {
            return "step, round " + std::to_string(step.round);
        }
        std::string operator()(const rendezvous::Leave&) const { return "leave"; }
    } words;
    return std::visit(words, message);
}

}  // namespace

Node::Node(int number, Timeline& timeline, Scenario& scenario, const Clock& clock,
           const Plants& plants, Ties ties)
    : number_(number),
      timeline_(timeline),
      scenario_(scenario),
      clock_(clock),
      plants_(plants),
      ties_(std::move(ties)),
      agent_(rules_of(number, scenario)),
      host_(timeline, scenario, host_ties()) {}

Host::Ties Node::host_ties() {
    return {
        [this](int round, GroupEvent event) {
            if (round_ == round) feed(AgentEvent(std::move(event)));
        },
        ties_.worker_failed,
        [this](const Process& process) { invariants_->changed(number_, process); },
        [this](const Process& process, const StoreStep& step) { ask_store(process, step); },
        [this](const Process& process, const StoreStep& step, const rendezvous::ToWorker& reply) {
            return invariants_->store(number_, process.round).answered(process.rank, step, reply);
        },
        [this](int round, int rank) {
            if (link_ && !finished_) link_->submit(rendezvous::StoreForgotten{round, rank});
        }};
}

void Node::start() {
    if (ended_) return;
    started_ = true;
    invariants_->started(number_);
    if (link_) link_->start();
    feed(AgentEvent(Started{}));
}

void Node::hear(const rendezvous::FromCoordinator& message) {
    feed(AgentEvent(message));
}

std::string Node::describe() const {
    if (!started_) return "not started";
    const std::string state = ended_ ? "ended; " : asleep_ ? "asleep; " : "";
    return state + agent_.describe() + (link_ ? "; link " + link_->describe() : "");
}

void Node::signal(int signal) {
    if (finished_ || ended_ || !started_) return;
    feed(AgentEvent(SignalArrived{signal, 1, 0, false}));
}

void Node::suffer(const Trouble& trouble) {
    if (ended_ || !started_) return;
    if (trouble.kind == Trouble::Kind::power_off) return power_off();
    if (trouble.kind == Trouble::Kind::agent_killed) return agent_killed();
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
        case Trouble::Kind::agent_stopped:
            return asleep_ ? void() : sleep_for(trouble.lasts, false);
        case Trouble::Kind::power_off:
        case Trouble::Kind::agent_killed:
        case Trouble::Kind::cut:
        case Trouble::Kind::cut_all:
        case Trouble::Kind::reset:
        case Trouble::Kind::reset_all:
        case Trouble::Kind::server_crash:
        case Trouble::Kind::server_stalls:
            return;
    }
}

// --- events and time ----------------------------------------------------------------------------

void Node::feed(AgentEvent event) {
    if (finished_ || ended_) return;
    events_.push_back(std::move(event));
    if (!handling_ && !asleep_) handle_all();
}

void Node::handle_all() {
    handling_ = true;
    while (!events_.empty() && !asleep_ && !finished_ && !ended_) {
        const AgentEvent event = std::move(events_.front());
        events_.pop_front();
        if (const auto* signal = std::get_if<SignalArrived>(&event); signal && stops(*signal)) {
            invariants_->told_to_stop(number_, signal->signal, timeline_.now());
        }
        perform(agent_.step(event, now()));
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
    if (finished_ || ended_ || asleep_ || next == timer_) return;
    timer_ = next;
    if (!next) return;
    timeline_.at(clock_.when_it_shows(*next), [this, due = *next] {
        if (timer_ != due || finished_ || ended_ || asleep_) return;
        timer_.reset();
        perform(agent_.advance_to(now()));
        invariants_->woken(number_, agent_.next_deadline(), now());
        handle_all();
    });
}

// Stopped, by Ctrl-Z or by somebody: nothing is handled until fg.
void Node::sleep_for(Duration time, bool by_terminal) {
    asleep_ = true;
    timer_.reset();
    if (link_) link_->fall_asleep();
    invariants_->slept(number_, time);
    timeline_.in(time, [this, by_terminal] {
        if (ended_) return;
        asleep_ = false;
        events_.push_front(
            AgentEvent(SignalArrived{signal_continue, by_terminal ? 0 : 1, 0, by_terminal}));
        // What is handled first is chance: the signal, what the network brought, a timer.
        const int first = link_ ? scenario_.number(0, 3) : 0;
        if (link_ && first != 0) link_->wake_up(first == 1);
        handle_all();
        if (link_ && first == 0) link_->wake_up(scenario_.one_in(2));
    });
}

// --- actions ------------------------------------------------------------------------------------

void Node::act(const Say& action) {
    if (!link_) return ties_.say(action.message);
    ties_.trace("says " + words_of(action.message));
    if (plants_.done_leaves && std::holds_alternative<rendezvous::NodeDone>(action.message)) {
        return feed(AgentEvent(rendezvous::FromCoordinator(rendezvous::Verdict{})));
    }
    link_->submit(action.message);
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
    sleep_for(nap_, true);
}

void Node::act(const Finish& action) {
    ties_.trace("ends with " + std::to_string(action.exit_code) +
                (action.cause ? ": " + action.cause->words : ""));
    finished_ = true;
    invariants_->finished(number_, action, timeline_.now());
    if (!link_) return end();
    link_->finish(!action.still_there.empty());
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
    if (link_) link_->abort_waits(grant_.round, action.words);
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

// --- several nodes ------------------------------------------------------------------------------

void Node::reach_server_through(Network& network) {
    link_ = std::make_unique<LinkShell>(link_rules(), machine_of(number_, scenario_), timeline_,
                                        clock_, network, plants_, link_ties());
}

rendezvous::NodeLinkRules Node::link_rules() {
    rendezvous::NodeLinkRules rules;
    rules.terms = scenario_.cluster->terms;
    rules.offer = rules_of(number_, scenario_).join;
    rules.node_incarnation = "node" + std::to_string(number_);
    rules.obituary_token = "token" + std::to_string(number_);
    rules.endpoint = "10.9.0.1:29400";
    rules.rendezvous_grace = scenario_.cluster->grace;
    rules.jitter_seed = scenario_.bits();
    return rules;
}

LinkShell::Ties Node::link_ties() {
    return {[this](rendezvous::FromCoordinator message) {
                const auto* stop = std::get_if<rendezvous::StopRound>(&message);
                if (plants_.early_gone && stop != nullptr && round_ == stop->round) {
                    link_->submit(rendezvous::ToCoordinator(rendezvous::RoundGone{stop->round}));
                }
                hear(message);
            },
            [this](const rendezvous::StoreAnswered& answer) { answer_store(answer); },
            [this](const rendezvous::Fence& fence) { hear_fence(fence); },
            [this](TimePoint until) {
                host_.lease_until(clock_.when_it_shows(until), scenario_.cluster->grace);
            },
            [this] { end(); },
            [this](const rendezvous::FromServer& message) {
                invariants_->server_said(number_, message);
            },
            ties_.trace};
}

void Node::hear_fence(const rendezvous::Fence& fence) {
    switch (fence.step) {
        case rendezvous::FenceStep::freeze:
            invariants_->fenced(number_);
            invariants_->saw("workers were frozen");
            return feed(AgentEvent(FenceChanged{FenceChanged::Step::freeze, fence.words}));
        case rendezvous::FenceStep::thaw:
            invariants_->saw("workers were thawed");
            return feed(AgentEvent(FenceChanged{FenceChanged::Step::thaw, fence.words}));
        case rendezvous::FenceStep::kill:
            invariants_->fenced(number_);
            invariants_->saw("workers were fenced off");
            return feed(AgentEvent(FenceChanged{FenceChanged::Step::kill, fence.words}));
    }
}

void Node::power_off() {
    ties_.trace("loses its power");
    invariants_->died(number_);
    link_->die(true);
    host_.power_off();
    end();
}

void Node::agent_killed() {
    ties_.trace("is killed");
    invariants_->died(number_);
    link_->die(false);
    host_.agent_dies([this] {
        if (link_->armed()) link_->send_obituary();
    });
    end();
}

void Node::end() {
    if (std::exchange(ended_, true)) return;
    events_.clear();
    ties_.ended();
}

// --- the store ----------------------------------------------------------------------------------

void Node::ask_store(const Process& process, const StoreStep& step) {
    auto request = invariants_->store(number_, process.round).ask(process.rank, step);
    if (ended_ || finished_ || answers_from_an_old_round(request, process.rank)) return;
    link_->submit(rendezvous::StoreAsked{process.round, process.rank, std::move(request)});
}

void Node::answer_store(const rendezvous::StoreAnswered& answer) {
    const auto* value = std::get_if<rendezvous::StoreValue>(&answer.reply);
    if (plants_.reused_keys && value != nullptr && swaps_.contains({answer.rank, value->id})) {
        old_owner_ = value->value;
    }
    host_.answer(answer.round, answer.rank, answer.reply);
}

// The planted bug: who won a compare-set in an older round has won this one too.
bool Node::answers_from_an_old_round(const rendezvous::FromWorker& request, int rank) {
    const auto* swap = std::get_if<rendezvous::StoreCompareSet>(&request);
    if (!plants_.reused_keys || swap == nullptr) return false;
    swaps_.emplace(rank, swap->id);
    if (!old_owner_) return false;
    host_.answer(*round_, rank, rendezvous::StoreValue{swap->id, *old_owner_});
    return true;
}

}  // namespace ddrun::simulation
