#include "launcher/environment/placement.hpp"

#include "launcher/environment/kubernetes.hpp"
#include "tests/support/catch.hpp"

#include <map>
#include <string>

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

Placement place(const Environment& environment, const std::string& own_name = {}) {
    return read_placement(
        [&](std::string_view name) -> std::optional<std::string> {
            const auto found = environment.find(name);
            return found == environment.end() ? std::nullopt : std::optional(found->second);
        },
        own_name);
}

std::string value_of(const Placement& placement, const std::string& option) {
    for (const auto& value : placement.values)
        if (value.option == option) return value.text;
    return "none";
}

Environment step() {
    return {{"SLURM_JOB_ID", "7"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_STEP_NODELIST", "n[1-2]"},
            {"SLURM_STEP_NUM_NODES", "2"},
            {"SLURM_JOB_NUM_NODES", "4"},
            {"SLURM_NODEID", "1"},
            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};
}

}  // namespace

TEST_CASE("without a scheduler nothing is placed") {
    CHECK(place({}).scheduler.empty());
    CHECK(place({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}).values.empty());
}

TEST_CASE("a Slurm step gives nodes, place, first host and an id of its own") {
    const Placement placement = place(step());
    CHECK(placement.scheduler == "Slurm");
    CHECK(value_of(placement, "nnodes") == "2");
    CHECK(value_of(placement, "node-rank") == "1");
    CHECK(value_of(placement, "rdzv-id") == "7.0");
    CHECK_THAT(value_of(placement, "rdzv-endpoint"), Contains("n1:"));
    CHECK(placement.copies_here == 1);

    Environment again = step();
    again["SLURM_RESTART_COUNT"] = "1";
    CHECK(value_of(place(again), "rdzv-id") == "7.0-1");
    CHECK(value_of(place(again), "rdzv-endpoint") != value_of(placement, "rdzv-endpoint"));
}

TEST_CASE("ports of steps are below those that kernels give away, and differ between steps") {
    std::map<std::string, int> used;
    for (int job = 1; job <= 100; ++job) {
        Environment one = step();
        one["SLURM_JOB_ID"] = std::to_string(job);
        const std::string endpoint = value_of(place(one), "rdzv-endpoint");
        const int port = std::stoi(endpoint.substr(endpoint.find(':') + 1));
        CHECK(port >= 20'000);
        CHECK(port < 32'000);
        ++used[endpoint];
    }
    CHECK(used.size() > 95);
}

TEST_CASE("a step on one node needs no place to meet; a batch script is told of its other nodes") {
    Environment one = step();
    one["SLURM_STEP_NODELIST"] = "n2";
    one["SLURM_STEP_NUM_NODES"] = "1";
    one["SLURM_NODEID"] = "0";
    CHECK(value_of(place(one), "nnodes") == "none");
    CHECK(value_of(place(one), "rdzv-endpoint") == "none");

    const Placement batch = place({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "4"}});
    CHECK(value_of(batch, "rdzv-id") == "7");
    CHECK_THAT(batch.advice, Contains("has 4 nodes") && Contains("srun --ntasks-per-node=1"));
    CHECK(place({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "1"}}).advice.empty());
}

TEST_CASE("SLURM-3: a list that is not legal is quoted") {
    Environment broken = step();
    broken["SLURM_STEP_NODELIST"] = "n[1-";
    CHECK_THAT(place(broken).unreadable, Contains("SLURM_STEP_NODELIST") && Contains("n[1-"));
}

TEST_CASE("a pod of an Indexed Job finds pod 0 beside itself") {
    const Environment pod = {{"JOB_COMPLETION_INDEX", "3"},
                             {"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                             {"HOSTNAME", "train-3"}};
    const Placement placement = place(pod, "train-3.train.ns.svc.cluster.local");
    CHECK(placement.scheduler == "Kubernetes");
    CHECK(value_of(placement, "node-rank") == "3");
    CHECK(value_of(placement, "rdzv-endpoint") == "train-0.train.ns.svc.cluster.local");
    CHECK(value_of(placement, "nnodes") == "none");
    // Of a JobSet: the pod's index is the last number.
    CHECK(value_of(place(pod, "set-workers-0-3.set.ns.svc"), "rdzv-endpoint") ==
          "set-workers-0-0.set.ns.svc");
    // Without a stable name there is nothing to go by.
    for (const char* name : {"", "train-3", "train-13.train", "other.train", "-3.train"})
        CHECK(value_of(place(pod, name), "rdzv-endpoint") == "none");
    Environment wrong = pod;
    wrong["JOB_COMPLETION_INDEX"] = "-3";
    CHECK_THAT(place(wrong).unreadable, Contains("JOB_COMPLETION_INDEX='-3' is not a number"));
}

TEST_CASE("a pod of a PyTorchJob is told of nodes, and a worker's own variables are not that") {
    const Environment pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                             {"RANK", "1"},
                             {"WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "job-master-0"},
                             {"MASTER_PORT", "23456"}};
    const Placement placement = place(pod);
    CHECK(value_of(placement, "nnodes") == "4");
    CHECK(value_of(placement, "node-rank") == "1");
    CHECK(value_of(placement, "rdzv-endpoint") == "job-master-0");
    Environment worker = pod;
    worker["DDRUN_WORKER_TAG"] = "a.1.0";
    CHECK(place(worker).values.empty());
    Environment trainer = pod;
    trainer["PET_NNODES"] = "4";
    CHECK(place(trainer).values.empty());
}

TEST_CASE("a pod's full name is the one of its hosts file that begins with its host name") {
    const std::string hosts =
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n"
        "10.1.2.3\ttrain-3.train.ns.svc.cluster.local\ttrain-3\n";
    CHECK(full_name_in_hosts_file(hosts, "train-3") == "train-3.train.ns.svc.cluster.local");
    CHECK(full_name_in_hosts_file(hosts, "train").empty());
    CHECK(full_name_in_hosts_file(hosts, "").empty());
    CHECK(full_name_in_hosts_file("10.1.2.3 # train-3.x\n", "train-3").empty());
}
