#include "tests/simulation/link_shell.hpp"

#include <utility>
#include <variant>

namespace ddrun::simulation {

using namespace rendezvous;

LinkShell::LinkShell(NodeLinkRules rules, int machine, Timeline& timeline, const Clock& clock,
                     Network& network, const Plants& plants, Ties ties)
    : rules_(rules),
      timeline_(timeline),
      clock_(clock),
      network_(network),
      plants_(plants),
      ties_(std::move(ties)),
      link_(std::move(rules)),
      node_(network.add_node(machine, ears())) {}

Network::NodeEars LinkShell::ears() {
    const auto if_current = [this](ConnectionId id, NodeLinkEvent event) {
        if (id == connection_) feed(std::move(event));
    };
    return {
        [=, this](ConnectionId id) {
            if_current(id, ConnectionOpened{rules_.offer.address, rules_.endpoint,
                                            rules_.offer.hosts_endpoint});
        },
        [=](ConnectionId id, const std::string& words) {
            if_current(id, ConnectionFailed{words, false, 0});
        },
        [=](ConnectionId id, const FromServer& message) { if_current(id, message); },
        [=](ConnectionId id) { if_current(id, ConnectionLost{"connection reset"}); },
    };
}

void LinkShell::start() {
    advance();
}

void LinkShell::submit(ToJob payload) {
    feed(Submit{std::move(payload)});
}

void LinkShell::abort_waits(int round, const std::string& words) {
    feed(AbortWaits{round, words});
}

void LinkShell::finish(bool processes_left) {
    feed(NodeFinished{processes_left});
}

void LinkShell::wake_up(bool timers_first) {
    asleep_ = false;
    timer_.reset();
    if (timers_first) advance();
    handle_all();
}

void LinkShell::die(bool in_silence) {
    dead_ = true;
    events_.clear();
    network_.node_ends(node_, in_silence);
}

void LinkShell::send_obituary() {
    network_.post(node_, Obituary{rules_.terms.job_id, rules_.obituary_token});
}

// --- events and time ----------------------------------------------------------------------------

void LinkShell::feed(NodeLinkEvent event) {
    if (dead_) return;
    events_.push_back(std::move(event));
    if (!handling_ && !asleep_) handle_all();
}

void LinkShell::handle_all() {
    handling_ = true;
    while (!events_.empty() && !asleep_ && !dead_) {
        NodeLinkEvent event = std::move(events_.front());
        events_.pop_front();
        if (const auto* message = std::get_if<FromServer>(&event)) ties_.heard(*message);
        perform(link_.step(std::move(event), now()));
    }
    handling_ = false;
    set_timer();
}

void LinkShell::advance() {
    handling_ = true;
    perform(link_.advance_to(now()));
    handling_ = false;
    handle_all();
}

void LinkShell::perform(NodeLink::Actions actions) {
    for (NodeLinkAction& action : actions) {
        std::visit([this](auto& one) { act(one); }, action);
    }
    if (link_.finished() && !std::exchange(finished_said_, true)) ties_.finished();
}

void LinkShell::set_timer() {
    const auto next = link_.next_deadline();
    if (dead_ || asleep_ || next == timer_) return;
    timer_ = next;
    if (!next) return;
    timeline_.at(clock_.when_it_shows(*next), [this, due = *next] {
        if (timer_ != due || dead_ || asleep_) return;
        timer_.reset();
        advance();
    });
}

// --- actions ------------------------------------------------------------------------------------

void LinkShell::act(OpenConnection&) {
    connection_ = network_.connect(node_);
}

void LinkShell::act(CloseConnection&) {
    network_.close_from_node(connection_);
    connection_ = 0;
}

void LinkShell::act(SendToServer& action) {
    if (plants_.forgotten_keys) {
        if (auto* keys = std::get_if<PresentKeys>(&action.message)) keys->keys.clear();
    }
    network_.from_node(connection_, std::move(action.message));
}

void LinkShell::act(Deliver& action) {
    if (auto* message = std::get_if<FromCoordinator>(&action.payload)) {
        ties_.deliver(std::move(*message));
    } else {
        ties_.answer(std::get<StoreAnswered>(action.payload));
    }
}

void LinkShell::act(Fence& action) {
    ties_.trace("fence: " + action.words);
    if (plants_.no_fence && action.step == FenceStep::freeze) return;
    ties_.fence(action);
}

void LinkShell::act(LeaseUntil& action) {
    if (!plants_.no_fence) ties_.lease_until(action.until);
}

void LinkShell::act(ArmObituary&) {
    armed_ = true;
}

}  // namespace ddrun::simulation
