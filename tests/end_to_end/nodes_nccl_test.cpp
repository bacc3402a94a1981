// NCCL's unique ids across nodes, made by the real library where it is installed.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <map>
#include <set>
#include <sstream>

using namespace ddrun::test;

namespace {

// What all ranks said of one round.
std::set<std::string> said_of(const Cluster& cluster, const std::string& round) {
    std::set<std::string> ids;
    for (const auto& job : cluster.jobs) {
        std::istringstream lines(job->output());
        for (std::string line; std::getline(lines, line);)
            if (const auto at = line.find(round + ": "); at != std::string::npos)
                ids.insert(line.substr(at + round.size() + 2));
    }
    return ids;
}

}  // namespace

TEST_CASE("all ranks of two nodes get one NCCL id, and another one in the next round") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2", "--nproc-per-node=2", "--max-restarts=1", "--restart-backoff=0"};
    for (int host = 0; host < 2; ++host)
        cluster.start(host, cluster.invocation({}, {std::string(DDRUN_BUILD_DIR) +
                                                    "/tests/end_to_end/test_nccl_ids"}));
    const int code = cluster.code(0, 30s);
    INFO(cluster.said());
    if (code == 2 && has(cluster.said(), "NCCL cannot be loaded")) {
        WARN("skipped: NCCL is not installed");
        return;
    }
    CHECK(cluster.all_end_with(0, 10s));
    const auto first = said_of(cluster, "round 1");
    const auto second = said_of(cluster, "round 2");
    CHECK(first.size() == 1);
    CHECK(second.size() == 1);
    CHECK(first != second);
}
