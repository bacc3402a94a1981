#include "launcher/environment/slurm.hpp"
#include "tests/support/catch.hpp"

#include <map>
#include <string>

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

SlurmReading read(const Environment& environment) {
    return read_slurm([&](std::string_view name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
    });
}

// As Slurm 22.05 sets them for the second of two nodes.
Environment step() {
    return {{"SLURM_JOB_ID", "7"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_STEP_NODELIST", "n[1-2]"},
            {"SLURM_STEP_NUM_NODES", "2"},
            {"SLURM_JOB_NODELIST", "n[1-4]"},
            {"SLURM_JOB_NUM_NODES", "4"},
            {"SLURM_NODEID", "1"},
            {"SLURM_LOCALID", "0"},
            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};
}

}  // namespace

TEST_CASE("without Slurm there are no facts and no problem") {
    CHECK_FALSE(read({}).facts);
    CHECK(read({}).problem.empty());
}

TEST_CASE("SLURM-1: a step counts more than its job") {
    const auto facts = read(step()).facts;
    REQUIRE(facts);
    CHECK(facts->node_count == 2);
    CHECK(facts->node_id == 1);
    CHECK(facts->hosts == std::vector<std::string>{"n1", "n2"});
    CHECK(facts->tasks_here == 1);
    CHECK(facts->run_id() == "7.0");
}

TEST_CASE("a requeued job is another run") {
    Environment again = step();
    again["SLURM_RESTART_COUNT"] = "2";
    CHECK(read(again).facts->run_id() == "7.0-2");
}

TEST_CASE("the batch script is one node, whatever the allocation") {
    Environment batch = step();
    for (const char* name : {"SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES",
                             "SLURM_STEP_TASKS_PER_NODE"}) {
        batch.erase(name);
    }
    const auto facts = read(batch).facts;
    REQUIRE(facts);
    CHECK_FALSE(facts->in_step);
    CHECK(facts->job_nodes == 4);
    CHECK(facts->node_count == 1);
    CHECK(facts->run_id() == "7");
}

TEST_CASE("SLURM-1: several tasks on this node are counted, uneven ones too") {
    Environment uneven = step();
    uneven["SLURM_STEP_TASKS_PER_NODE"] = "1,3";
    uneven["SLURM_LOCALID"] = "2";
    const auto facts = read(uneven).facts;
    REQUIRE(facts);
    CHECK(facts->tasks_here == 3);
    CHECK(facts->task_here == 2);
}

TEST_CASE("variables that contradict each other or say nothing are named") {
    const auto problem_with = [](const char* name, const char* value) {
        Environment broken = step();
        broken[name] = value;
        return read(broken).problem;
    };
    CHECK_THAT(problem_with("SLURM_NODEID", "x"), Contains("SLURM_NODEID='x'"));
    CHECK_THAT(problem_with("SLURM_NODEID", "2"), Contains("beyond the step's 2 nodes"));
    CHECK_THAT(problem_with("SLURM_STEP_NODELIST", "n[1-"), Contains("bracket"));
    CHECK_THAT(problem_with("SLURM_STEP_NODELIST", "n1"), Contains("names 1 nodes"));
    CHECK_THAT(problem_with("SLURM_STEP_TASKS_PER_NODE", "1"), Contains("nothing about node 1"));
}

TEST_CASE("counts per node in Slurm's notation") {
    CHECK(expand_counts("2(x3),1") == std::vector<int>{2, 2, 2, 1});
    CHECK(expand_counts("4") == std::vector<int>{4});
    for (const char* wrong : {"", ",", "2,", "2(x", "2(x3", "(x3)", "2(3)", "x", "-1", "2(x-1)",
                              "2(x99999999)", "2 1"}) {
        CAPTURE(wrong);
        CHECK(expand_counts(wrong).empty());
    }
}
