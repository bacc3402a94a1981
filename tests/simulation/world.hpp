#pragma once

#include "rendezvous/core/coordinator.hpp"
#include "tests/simulation/clock.hpp"
#include "tests/simulation/invariants.hpp"
#include "tests/simulation/network.hpp"
#include "tests/simulation/node.hpp"
#include "tests/simulation/plants.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/server.hpp"
#include "tests/simulation/timeline.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ddrun::simulation {

// One job from one seed: one node with the coordinator in its process, or several nodes, a server
// and the network between them.
class World {
  public:
    // `trace`: print what happens.
    World(std::uint64_t seed, const Plants& plants, bool trace);

    // To the end of the job. Throws Broken.
    void run();

    [[nodiscard]] std::string describe() const;
    [[nodiscard]] const std::set<std::string>& seen() const { return invariants_.seen(); }

  private:
    void build_nodes();
    void build_cluster();
    void plan();
    void plan_arrivals();
    void happen(const Trouble& trouble);
    void note_grounds(const Trouble& trouble);
    void arrive(int node);
    void node_ended(int node);
    void linger(int node, TimePoint since);
    void crash_server(const Trouble& trouble);
    [[nodiscard]] bool hosts_server(int node) const;
    [[nodiscard]] int machine_of(int node) const;
    [[nodiscard]] const Clock& clock_of(int machine);
    [[nodiscard]] bool all_ended() const;

    // One node.
    void to_coordinator(rendezvous::ToCoordinator message);
    void perform(const rendezvous::Coordinator::Actions& answers);
    void set_coordinator_timer();

    void trace(const std::string& words) const;

    Timeline timeline_;
    TimePoint started_ = timeline_.now();
    Scenario scenario_;
    Plants plants_;
    bool trace_;
    Invariants invariants_{scenario_};
    std::map<int, Clock> clocks_;  // by machine
    std::vector<std::unique_ptr<Node>> nodes_;
    int arrivals_left_ = 0;

    // One node.
    rendezvous::Coordinator coordinator_;
    std::optional<TimePoint> coordinator_timer_;

    // Several.
    std::optional<Network> network_;
    std::optional<Server> server_;
    int server_host_ = -1;  // the node whose agent runs it
    bool server_is_gone_for_ever_ = false;
};

}  // namespace ddrun::simulation
