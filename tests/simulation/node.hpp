#pragma once

#include "launcher/core/agent.hpp"
#include "tests/simulation/clock.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/invariants.hpp"
#include "tests/simulation/link_shell.hpp"
#include "tests/simulation/plants.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/timeline.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace ddrun::simulation {

// The shell of one agent: performs each action with one call, owns one timer, queues events.
class Node {
  public:
    struct Ties {
        std::function<void(rendezvous::ToCoordinator)> say;
        std::function<void(int round, int rank)> worker_failed;
        std::function<void(const std::string& words)> trace;
        std::function<void()> ended;  // the process of the agent is gone
    };

    Node(int number, Timeline& timeline, Scenario& scenario, const Clock& clock,
         const Plants& plants, Ties ties);
    void watched_by(Invariants& invariants) { invariants_ = &invariants; }
    // One of several: what it says goes to a server.
    void reach_server_through(Network& network);

    void start();
    void hear(const rendezvous::FromCoordinator& message);
    void suffer(const Trouble& trouble);
    void signal(int signal);
    void peer_failed(int round, int rank) { host_.peer_failed(round, rank); }

    [[nodiscard]] const Host& host() const { return host_; }
    [[nodiscard]] bool started() const { return started_; }
    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] std::string describe() const;

  private:
    [[nodiscard]] TimePoint now() const { return clock_.shows(timeline_.now()); }
    [[nodiscard]] Host::Ties host_ties();
    [[nodiscard]] LinkShell::Ties link_ties();
    [[nodiscard]] rendezvous::NodeLinkRules link_rules();
    void hear_fence(const rendezvous::Fence& fence);
    void power_off();
    void agent_killed();
    void end();
    void ask_store(const Process& process, const StoreStep& step);
    void answer_store(const rendezvous::StoreAnswered& answer);
    [[nodiscard]] bool answers_from_an_old_round(const rendezvous::FromWorker& request, int rank);
    void feed(launcher::AgentEvent event);
    void handle_all();
    void perform(const launcher::Agent::Actions& actions);
    void set_timer();
    void sleep_for(Duration time, bool by_terminal);

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
    const Clock& clock_;
    const Plants& plants_;
    Ties ties_;
    Invariants* invariants_ = nullptr;
    launcher::Agent agent_;
    Host host_;
    std::unique_ptr<LinkShell> link_;  // null: alone
    rendezvous::RoundGranted grant_;
    std::optional<int> round_;
    std::deque<launcher::AgentEvent> events_;
    bool handling_ = false;
    bool asleep_ = false;
    Duration nap_{};  // how long the next Ctrl-Z lasts
    bool started_ = false;
    bool finished_ = false;
    bool ended_ = false;
    // For the planted bug.
    std::set<std::pair<int, std::uint64_t>> swaps_;  // rank, id
    std::optional<rendezvous::Bytes> old_owner_;
    std::optional<TimePoint> timer_;
};

}  // namespace ddrun::simulation
