#include "launcher/config/plan_text.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun;
using namespace ddrun::launcher;

TEST_CASE("a plan shows each worker's command and what is new in its environment") {
    WorkerPlan plan;
    plan.rank = 5;
    plan.local_rank = 1;
    plan.argv = {"python3", "-u", "a b.py", "--lr=3"};
    plan.environment = {{"HOME", "/root"}, {"RANK", "5"}, {"NOTE", "it's"}};
    plan.cpus = {0, 1, 2, 8};
    plan.memory_node = 1;
    plan.owns_stdin = true;
    CHECK(plan_text({plan}, {{"HOME", "/root"}, {"OLD", "1"}}) ==
          "rank 5 (local rank 1): python3 -u 'a b.py' --lr=3\n"
          "    NOTE='it'\\''s'\n"
          "    OLD is taken out\n"
          "    RANK=5\n"
          "    CPUs 0-2,8\n"
          "    memory of NUMA node 1\n"
          "    reads ddrun's stdin\n");
}

TEST_CASE("what all workers have in common is shown once") {
    std::vector<WorkerPlan> plan(2);
    for (int rank = 0; rank < 2; ++rank) {
        auto& worker = plan[static_cast<std::size_t>(rank)];
        worker.rank = worker.local_rank = rank;
        worker.argv = {"./train"};
        worker.environment = {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}};
    }
    CHECK(plan_text(plan, {{"OLD", "1"}}) ==
          "every worker:\n"
          "    OLD is taken out\n"
          "    WORLD_SIZE=2\n"
          "rank 0 (local rank 0): ./train\n"
          "    RANK=0\n"
          "rank 1 (local rank 1): ./train\n"
          "    RANK=1\n");
}
