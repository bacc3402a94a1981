#pragma once

#include "rendezvous/core/node_link.hpp"
#include "tests/simulation/clock.hpp"
#include "tests/simulation/network.hpp"
#include "tests/simulation/plants.hpp"
#include "tests/simulation/timeline.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace ddrun::simulation {

// The shell of one agent's NodeLink: performs each action with one call, owns one timer, queues
// events.
class LinkShell {
  public:
    struct Ties {
        std::function<void(rendezvous::FromCoordinator)> deliver;
        std::function<void(const rendezvous::StoreAnswered&)> answer;
        std::function<void(const rendezvous::Fence&)> fence;
        std::function<void(TimePoint)> lease_until;  // on the machine's clock
        std::function<void()> finished;
        std::function<void(const rendezvous::FromServer&)> heard;  // before it is handled
        std::function<void(const std::string& words)> trace;
    };

    LinkShell(rendezvous::NodeLinkRules rules, int machine, Timeline& timeline, const Clock& clock,
              Network& network, const Plants& plants, Ties ties);

    void start();
    void submit(rendezvous::ToJob payload);
    void abort_waits(int round, const std::string& words);
    void finish(bool processes_left);

    // The agent's process stands still, and goes on.
    void fall_asleep() { asleep_ = true; }
    void wake_up(bool timers_first);
    // The agent's process was killed: its kernel says so, or the machine is off.
    void die(bool in_silence);
    // By the keeper of a dead agent.
    void send_obituary();

    // Since when no server has answered; nothing while one does.
    [[nodiscard]] bool armed() const { return armed_; }
    [[nodiscard]] std::string describe() const { return link_.describe(); }

  private:
    [[nodiscard]] TimePoint now() const { return clock_.shows(timeline_.now()); }
    [[nodiscard]] Network::NodeEars ears();
    void feed(rendezvous::NodeLinkEvent event);
    void handle_all();
    void advance();
    void perform(rendezvous::NodeLink::Actions actions);
    void set_timer();

    void act(rendezvous::OpenConnection& action);
    void act(rendezvous::CloseConnection& action);
    void act(rendezvous::SendToServer& action);
    void act(rendezvous::Deliver& action);
    void act(rendezvous::Fence& action);
    void act(rendezvous::LeaseUntil& action);
    void act(rendezvous::ArmObituary& action);

    rendezvous::NodeLinkRules rules_;
    Timeline& timeline_;
    const Clock& clock_;
    Network& network_;
    const Plants& plants_;
    Ties ties_;
    rendezvous::NodeLink link_;
    int node_;  // the network's number
    ConnectionId connection_ = 0;
    std::deque<rendezvous::NodeLinkEvent> events_;
    std::optional<TimePoint> timer_;
    bool handling_ = false;
    bool asleep_ = false;
    bool dead_ = false;
    bool armed_ = false;
    bool finished_said_ = false;
};

}  // namespace ddrun::simulation
