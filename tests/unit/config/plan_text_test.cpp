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
          "    RANK=5\n"
          "    OLD is taken out\n"
          "    CPUs 0-2,8\n"
          "    memory of NUMA node 1\n"
          "    reads ddrun's stdin\n");
}
