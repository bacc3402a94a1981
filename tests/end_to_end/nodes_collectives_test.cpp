// Collectives of real workers on several nodes, and what becomes of them when a node dies.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <signal.h>

#include <filesystem>

using namespace ddrun::test;

namespace {

std::string example(const std::string& name) {
    return std::string(DDRUN_BUILD_DIR) + "/examples/" + name + "/" + name;
}

}  // namespace

TEST_CASE("an SDK program reduces over three nodes as it does on one") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=3"};
    for (int host = 0; host < 3; ++host)
        cluster.start(host, cluster.invocation({"--nproc-per-node=" + std::to_string(1 + host % 2)},
                                               {example("02_all_reduce")}));
    const bool ended_well = cluster.all_end_with(0, 60s);
    INFO(cluster.said());
    CHECK(ended_well);
    CHECK(has(cluster.on(0).output(), "all-reduce among 4 ranks"));
    CHECK(has(cluster.on(0).output(), "25 MB in ordinary memory"));
}

TEST_CASE("training over two nodes: a node dies, a spare takes its place, no step is lost") {
    DDRUN_NEEDS_HOSTS();
    if (!std::filesystem::exists(example("04_train_gpt"))) {
        WARN("skipped: 04_train_gpt is not built (no OpenBLAS)");
        return;
    }
    const std::size_t steps = 300;
    TemporaryDirectory undisturbed, disturbed;
    const auto start_all = [&](Cluster& cluster, const TemporaryDirectory& directory) {
        cluster.flags = {"--nnodes=2",         "--spares=1",           "--max-restarts=2",
                         "--heartbeat=200ms",  "--lease=3s",           "--restart-backoff=0",
                         "--nproc-per-node=2", "--shutdown-timeout=2s"};
        for (int host = 0; host < 3; ++host)
            cluster.start(host,
                          cluster.invocation(
                              {}, {example("04_train_gpt"), "--width=64", "--layers=2", "--heads=2",
                                   "--context=64", "--global-batch=16", "--checkpoint-every=5",
                                   "--warmup=10", "--sample=0", "--steps=" + std::to_string(steps),
                                   "--checkpoint-dir=" + directory.path() + "/checkpoints",
                                   "--loss-file=" + directory.path() + "/loss"}));
    };
    {
        Cluster cluster(3);
        start_all(cluster, undisturbed);
        const bool ended_well = cluster.all_end_with(0, 60s);
        INFO(cluster.said());
        REQUIRE(ended_well);
    }
    Cluster cluster(3);
    start_all(cluster, disturbed);
    const auto reached = [&] {
        return lines_of(read_file(disturbed.file("loss"))).size() >= steps / 3;
    };
    REQUIRE(cluster.on(0).wait_until(reached, 30s));
    cluster.on(1).send_signal(SIGKILL);
    CHECK(cluster.code(0, 60s) == 0);
    CHECK(cluster.code(2, 10s) == 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(0).errors(), "n1"));
    CHECK(read_file(disturbed.file("loss")) == read_file(undisturbed.file("loss")));
    CHECK(lines_of(read_file(disturbed.file("loss"))).size() == steps);
}
