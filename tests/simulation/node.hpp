#pragma once

#include "launcher/core/agent.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/invariants.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/timeline.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace ddrun::simulation {

// The shell of one agent: performs each action with one call, owns one timer, queues events.
class Node {
  public:
    struct Ties {
        std::function<void(rendezvous::ToCoordinator)> say;
        std::function<void(int round, int rank)> worker_failed;
        std::function<void(const std::string& words)> trace;
    };

    Node(int number, Timeline& timeline, Scenario& scenario, Ties ties);
    void watched_by(Invariants& invariants) { invariants_ = &invariants; }

    void start();
    void hear(const rendezvous::FromCoordinator& message);
    void suffer(const Trouble& trouble);
    void signal(int signal);
    void peer_failed(int round, int rank) { host_.peer_failed(round, rank); }

    [[nodiscard]] const Host& host() const { return host_; }
    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] std::string describe() const { return agent_.describe(); }

  private:
    void feed(launcher::AgentEvent event);
    void handle_all();
    void perform(const launcher::Agent::Actions& actions);
    void set_timer();
    void sleep_for(Duration time);

    void act(const launcher::Say& action);
    void act(const launcher::BeginRound& action);
    void act(const launcher::EndRound& action);
    void act(const launcher::SuspendSelf& action);
    void act(const launcher::Finish& action);
    void act(const launcher::GroupAction& action);
    void act(const launcher::StartWorkers& action);
    void act(const launcher::SignalWorkers& action);
    void act(const launcher::TellWorkersToStop&) {}
    void act(const launcher::TellWorkersAborted& action);
    void act(const launcher::KillTrees& action);
    void act(const launcher::CleanUpAfter& action);
    void act(const launcher::InspectWorker& action);
    void act(const launcher::SuspendWorkers& action);
    void act(const launcher::Note& action);

    int number_;
    Timeline& timeline_;
    Scenario& scenario_;
    Ties ties_;
    Invariants* invariants_ = nullptr;
    launcher::Agent agent_;
    Host host_;
    rendezvous::RoundGranted grant_;
    std::optional<int> round_;
    std::deque<launcher::AgentEvent> events_;
    bool handling_ = false;
    bool asleep_ = false;
    Duration nap_{};  // how long the next Ctrl-Z lasts
    bool finished_ = false;
    std::optional<TimePoint> timer_;
};

}  // namespace ddrun::simulation
