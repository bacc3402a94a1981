#pragma once

#include "rendezvous/core/coordinator.hpp"
#include "tests/simulation/invariants.hpp"
#include "tests/simulation/node.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/timeline.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::simulation {

// One job from one seed: nodes, their links, the coordinator.
class World {
  public:
    // `trace`: print what happens.
    World(std::uint64_t seed, bool trace);

    // To the end of the job. Throws Broken.
    void run();

    [[nodiscard]] std::string describe() const;

  private:
    struct Link {
        Channel up;
        Channel down;
    };

    void plan();
    void to_coordinator(int node, rendezvous::ToCoordinator message);
    void perform(const rendezvous::Coordinator::Actions& answers);
    void set_coordinator_timer();
    [[nodiscard]] Duration message_delay();
    [[nodiscard]] bool all_finished() const;
    void trace(const std::string& words) const;

    Timeline timeline_;
    TimePoint started_ = timeline_.now();
    Scenario scenario_;
    bool trace_;
    rendezvous::Coordinator coordinator_;
    std::optional<TimePoint> coordinator_timer_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<Link> links_;
    std::optional<Invariants> invariants_;
};

}  // namespace ddrun::simulation
