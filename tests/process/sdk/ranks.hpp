#pragma once

#include "tests/support/fake_agent.hpp"

#include <ddrun/worker.hpp>

#include <functional>
#include <ostream>
#include <vector>

namespace ddrun::testing {

using RankBody = std::function<void(Worker& worker, std::ostream& say)>;

// Every rank makes its Worker and runs `body` with it.
inline std::vector<RankResult> run_ranks(FakeAgent& agent, const RankBody& body,
                                         const WorkerOptions& options = {}) {
    return agent.run([&](std::ostream& say) {
        Worker worker = Worker::from_environment(options);
        body(worker, say);
    });
}

inline std::vector<RankResult> run_ranks(int world, const RankBody& body) {
    FakeAgent agent(world);
    return run_ranks(agent, body);
}

}  // namespace ddrun::testing
