#include "launcher/core/worker_plan.hpp"
#include "tests/support/catch.hpp"

using namespace ddrun;
using namespace ddrun::launcher;

namespace {

MachineFacts cpus(int count) {
    MachineFacts facts;
    for (int cpu = 0; cpu < count; ++cpu) facts.allowed_cpus.push_back(cpu);
    return facts;
}

MachineFacts with_list(const char* list) {
    auto facts = cpus(4);
    facts.environment["CUDA_VISIBLE_DEVICES"] = list;
    return facts;
}

JobSpec asking(SlotSource source, int number = 1) {
    JobSpec spec;
    spec.slots = {source, number};
    return spec;
}

}  // namespace

TEST_CASE("RES-1: gpu counts the list up to the first entry that is no device") {
    auto count = [](const char* list) {
        return decide_slots(asking(SlotSource::gpu), with_list(list)).slots;
    };
    CHECK(count("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-1") == 2);
    CHECK(count("MIG-cfb2a8ae-1") == 1);
    CHECK(count("2,3") == 2);
    CHECK(count(" 2, 3 ") == 2);
    CHECK(count("0,2,-1,1") == 2);
    CHECK(count("0,,1") == 1);
    CHECK(count("99999999999999999999999") == 1);  // never an integer to us
}

TEST_CASE("RES-1: no visible GPU is a usage error that says what was looked at") {
    for (const char* list : {"", "-1", "none", "NoDevFiles"}) {
        const auto decision = decide_slots(asking(SlotSource::gpu), with_list(list));
        CHECK(decision.problem == "--nproc-per-node=gpu: no visible GPU (CUDA_VISIBLE_DEVICES=" +
                                      std::string(list) + ")");
        CHECK(decision.visible_gpus == 0);
    }
    const auto bare = decide_slots(asking(SlotSource::gpu), cpus(4));
    CHECK(bare.problem == "--nproc-per-node=gpu: no visible GPU (no /dev/nvidia* on this machine)");
    CHECK_FALSE(bare.visible_gpus);
}

TEST_CASE("RES-1: without a list the device nodes count; a repeated device is a warning") {
    auto facts = cpus(4);
    facts.device_nodes = 8;
    CHECK(decide_slots(asking(SlotSource::gpu), facts).slots == 8);
    const auto decision = decide_slots(asking(SlotSource::number, 2), with_list("0,0"));
    CHECK(decision.problem.empty());
    REQUIRE(decision.warnings.size() == 1);
    CHECK(decision.warnings[0] == "CUDA_VISIBLE_DEVICES=0,0 names device 0 more than once");
}

TEST_CASE("auto takes GPUs where there are any, else CPUs") {
    auto facts = cpus(6);
    CHECK(decide_slots(asking(SlotSource::automatic), facts).slots == 6);
    facts.device_nodes = 2;
    CHECK(decide_slots(asking(SlotSource::automatic), facts).slots == 2);
    facts.environment["CUDA_VISIBLE_DEVICES"] = "";
    CHECK(decide_slots(asking(SlotSource::automatic), facts).slots == 6);
}

TEST_CASE("cpu counts allowed CPUs, cut down to the cgroup's quota") {
    auto facts = cpus(16);
    CHECK(decide_slots(asking(SlotSource::cpu), facts).slots == 16);
    facts.cgroup_cpu_limit = 3;
    CHECK(decide_slots(asking(SlotSource::cpu), facts).slots == 3);
    CHECK(usable_cpus(MachineFacts{}) == 1);
}

TEST_CASE("RES-2: more workers than visible GPUs is one warning, or an error on request") {
    auto spec = asking(SlotSource::number, 6);
    const auto decision = decide_slots(spec, with_list("4,5"));
    CHECK(decision.slots == 6);
    REQUIRE(decision.warnings.size() == 1);
    CHECK(decision.warnings[0] ==
          "6 workers, 2 visible GPUs (CUDA_VISIBLE_DEVICES=4,5): ranks 2-5 have no device");
    spec.require_gpus = true;
    const auto refused = decide_slots(spec, with_list("4,5"));
    CHECK(refused.problem.find("ranks 2-5 have no device") != std::string::npos);
    CHECK(refused.warnings.empty());
}

TEST_CASE("RES-2: no warning where no GPU is wanted or there") {
    CHECK(decide_slots(asking(SlotSource::number, 6), cpus(2)).warnings.empty());
    CHECK(decide_slots(asking(SlotSource::number, 6), with_list("-1")).warnings.empty());
    CHECK(decide_slots(asking(SlotSource::number, 2), with_list("4,5")).warnings.empty());
    auto spec = asking(SlotSource::number, 1);
    spec.require_gpus = true;
    CHECK_FALSE(decide_slots(spec, cpus(2)).problem.empty());
}

TEST_CASE("--gpus wins over CUDA_VISIBLE_DEVICES and is named in messages") {
    auto spec = asking(SlotSource::gpu);
    spec.gpus = "0,1,2";
    CHECK(decide_slots(spec, with_list("7")).slots == 3);
    spec.gpus = "";
    CHECK(decide_slots(spec, with_list("7")).problem ==
          "--nproc-per-node=gpu: no visible GPU (--gpus=)");
}

TEST_CASE("on several nodes the ranks without a device are local ones") {
    auto spec = asking(SlotSource::number, 3);
    spec.max_nodes = 2;
    CHECK(decide_slots(spec, with_list("0,1")).warnings.at(0) ==
          "3 workers, 2 visible GPUs (CUDA_VISIBLE_DEVICES=0,1): local rank 2 has no device");
}

TEST_CASE("no worker at all is a usage error") {
    CHECK_FALSE(decide_slots(asking(SlotSource::number, 0), cpus(1)).problem.empty());
}

TEST_CASE("a binding that cannot be exclusive warns, or is refused with --strict-binding") {
    auto facts = cpus(2);
    facts.numa_nodes = {{0, 0, {0, 1}}};
    facts.cores = {{0}, {1}};
    auto spec = asking(SlotSource::number, 3);
    spec.numa_binding = NumaBinding::exclusive;
    CHECK(decide_slots(spec, facts).warnings.at(0) ==
          "--numa-binding=exclusive: NUMA node 0 has 2 usable cores for 3 workers, so some share");
    spec.strict_binding = true;
    CHECK_FALSE(decide_slots(spec, facts).problem.empty());
}
