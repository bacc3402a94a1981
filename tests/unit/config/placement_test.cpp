// What a scheduler says, among what people say.
#include "tests/support/catch.hpp"
#include "tests/unit/config/loading.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

Variables step(std::initializer_list<std::pair<const std::string, std::string>> more = {}) {
    Variables variables = {{"SLURM_JOB_ID", "7"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NODELIST", "n[1-4]"},
                           {"SLURM_STEP_NUM_NODES", "4"},
                           {"SLURM_NODEID", "3"},
                           {"SLURM_STEP_TASKS_PER_NODE", "1(x4)"}};
    for (const auto& [name, value] : more) variables[name] = value;
    return variables;
}

}  // namespace

TEST_CASE("srun ddrun ./train needs no other argument") {
    const auto job = spec({"./train"}, step());
    CHECK(job.min_nodes == 4);
    CHECK(job.max_nodes == 4);
    CHECK(job.node_rank == 3);
    CHECK(job.job_id == "7.0");
    CHECK(job.rendezvous_host == "n1");
    CHECK(job.rendezvous_port >= 20'000);
}

TEST_CASE("whoever says something counts more than Slurm, value by value") {
    CHECK(spec({"--rdzv-endpoint=h:1", "x"}, step()).rendezvous_host == "h");
    CHECK(spec({"--rdzv-endpoint=h:1", "x"}, step()).node_rank == 3);
    CHECK(spec({"--rdzv-port=1234", "x"}, step()).rendezvous_port == 1234);
    CHECK(spec({"--rdzv-id=mine", "x"}, step()).job_id == "mine");
    CHECK(spec({"--nnodes=2:4", "x"}, step()).min_nodes == 2);
    CHECK(spec({"x"}, step({{"PET_NNODES", "2:4"}})).min_nodes == 2);
}

TEST_CASE("one node of a larger step is a job of its own") {
    for (const char* flag : {"--nnodes=1", "--standalone"}) {
        const auto job = spec({flag, "x"}, step({{"SLURM_STEP_TASKS_PER_NODE", "2(x4)"}}));
        CHECK(job.max_nodes == 1);
        CHECK_FALSE(job.node_rank);
        CHECK_FALSE(job.master_port);
        CHECK(job.endpoint.empty());
    }
}

TEST_CASE("a node beyond the job's number is its spare") {
    const auto job = spec({"--nnodes=3", "--spares=1", "x"}, step());
    CHECK_FALSE(job.node_rank);
    CHECK(job.spares == 1);
}

TEST_CASE("SLURM-1: several ddrun on one node are refused, whatever else is given") {
    const auto crowded = step({{"SLURM_STEP_TASKS_PER_NODE", "2(x4)"}});
    const auto words = "srun started 2 ddrun per node, and one is enough; use --ntasks-per-node=1";
    CHECK_THAT(refusal({"x"}, crowded), Contains(words));
    CHECK_THAT(refusal({"--nnodes=2", "--rdzv-endpoint=h", "x"}, crowded), Contains(words));
}

TEST_CASE("an allocation that is too small for the flags is named") {
    CHECK_THAT(refusal({"--nnodes=8", "x"}, step()),
               Contains("--nnodes: 8 nodes, but Slurm gave this job 4"));
    CHECK_THAT(refusal({"--nnodes=4", "--spares=1", "x"}, step()),
               Contains("4 nodes and 1 spares, but Slurm gave this job 4"));
}

TEST_CASE("SLURM-3: what cannot be read is refused, unless it is not needed") {
    const auto broken = step({{"SLURM_STEP_NODELIST", "n[3-1]"}});
    CHECK_THAT(refusal({"x"}, broken),
               Contains("n[3-1]") && Contains("give --nnodes and --rdzv-endpoint"));
    CHECK(spec({"--nnodes=2", "--rdzv-endpoint=h", "x"}, broken).max_nodes == 2);
    CHECK(spec({"--standalone", "x"}, broken).max_nodes == 1);
}

TEST_CASE("an Indexed Job needs only its number of nodes") {
    const Variables pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                           {"JOB_COMPLETION_INDEX", "1"},
                           {"HOSTNAME", "train-1"}};
    const Files hosts = {{"/etc/hosts", "10.1.2.3 train-1.train.ns.svc train-1\n"}};
    const auto job = spec({"--nnodes=2", "x"}, pod, hosts);
    CHECK(job.node_rank == 1);
    CHECK(job.rendezvous_host == "train-0.train.ns.svc");
    CHECK(job.rendezvous_port == 29400);
    CHECK(spec({"x"}, pod, hosts).endpoint.empty());
}
