// The examples as their READMEs show them, and the promise of 04_train_gpt: kill -9 any rank at any
// time, and the run finishes with the undisturbed loss curve.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

using namespace ddrun::test;

namespace {

std::string example(const std::string& name) {
    return std::string(DDRUN_BUILD_DIR) + "/examples/" + name + "/" + name;
}

std::vector<std::string> small_gpt(const std::string& directory, int steps,
                                   std::vector<std::string> flags) {
    flags.push_back(example("04_train_gpt"));
    for (const char* flag :
         {"--width=32", "--layers=1", "--heads=2", "--context=32", "--global-batch=8",
          "--checkpoint-every=5", "--warmup=10", "--sample=20"})
        flags.emplace_back(flag);
    flags.push_back("--steps=" + std::to_string(steps));
    flags.push_back("--checkpoint-dir=" + directory + "/checkpoints");
    flags.push_back("--loss-file=" + directory + "/loss");
    return flags;
}

}  // namespace

TEST_CASE("01_hello_ranks: every rank says hello, and all are seen") {
    const auto end = run_ddrun({"--nproc-per-node=4", example("01_hello_ranks")}, 20s);
    CHECK(end.code == 0);
    CHECK(count_of(end.output, "hello from rank") == 4);
    CHECK(has(end.output, "[0] all here: r0 r1 r2 r3"));
    const auto alone = run({{example("01_hello_ranks")}, {}, {}, "", false, false, {}}, 10s);
    CHECK(alone.code == 0);
    CHECK(has(alone.output, "hello from rank 0 of 1"));
}

TEST_CASE("a worker in C has ranks, store, collectives and codes") {
    const std::string program = std::string(DDRUN_BUILD_DIR) + "/tests/end_to_end/test_c_worker";
    const auto end = run_ddrun({"--nproc-per-node=2", program}, 20s);
    INFO(end.output << end.errors);
    CHECK(end.code == 0);
    CHECK(has(end.output, "hello 0 of 2: sum 3 mean 0.5 part 0 last 1 stop 0"));
    CHECK(has(end.output, "hello 1 of 2: sum 3 mean 0.5 part 2 last 1 stop 0"));
    const auto alone = run({{program}, {}, {}, "", false, false, {}}, 10s);
    CHECK(has(alone.output, "hello 0 of 1: sum 1 mean 0 part 0 last 0 stop 0"));
    const auto never =
        run_ddrun({"--nproc-per-node=2", "--max-restarts=3", program, "no data"}, 20s);
    CHECK(never.code == 93);
    CHECK(has(never.errors, "no data"));
}

TEST_CASE("02_all_reduce: every element is right") {
    const auto end = run_ddrun({"--nproc-per-node=2", example("02_all_reduce")}, 60s);
    CHECK(end.code == 0);
    CHECK(has(end.output, "25 MB in shared memory"));
}

TEST_CASE("03_survive_a_crash: killed at step 25, finished all the same") {
    TemporaryDirectory directory;
    auto invocation = ddrun_with(
        {"--nproc-per-node=2", "--max-restarts=1", example("03_survive_a_crash"), "--crash-at=25"});
    invocation.directory = directory.path();
    const auto end = run(invocation, 30s);
    CHECK(end.code == 0);
    CHECK(has(end.output, "round 2: starting at step 20"));
    CHECK(has(end.output, "counter 319600"));
    CHECK(end.left_nothing);
}

TEST_CASE("04_train_gpt: kill -9 of any rank at any time gives the undisturbed loss curve") {
    if (!std::filesystem::exists(example("04_train_gpt"))) {
        WARN("skipped: 04_train_gpt is not built (no OpenBLAS)");
        return;
    }
    const char* chosen = std::getenv("DDRUN_CHAOS_SEED");
    const auto seed =
        chosen == nullptr ? std::random_device{}() : static_cast<unsigned>(std::atoll(chosen));
    WARN("replay: DDRUN_CHAOS_SEED=" << seed);
    std::mt19937 random(seed);
    TemporaryDirectory undisturbed, disturbed;
    const int steps = 120;
    REQUIRE(run_ddrun(small_gpt(undisturbed.path(), steps, {"--nproc-per-node=4"}), 120s).code ==
            0);
    const auto curve = read_file(undisturbed.file("loss"));
    REQUIRE(lines_of(curve).size() == static_cast<std::size_t>(steps));

    Program job(
        ddrun_with(small_gpt(disturbed.path(), steps,
                             {"--nproc-per-node=4", "--max-restarts=3", "--restart-backoff=0"})));
    for (int kill = 0; kill < 3; ++kill) {
        const auto before = lines_of(read_file(disturbed.file("loss"))).size();
        const auto progress = std::uniform_int_distribution<std::size_t>(1, 25)(random);
        job.wait_until(
            [&] {
                return job.wait(0ms) ||
                       lines_of(read_file(disturbed.file("loss"))).size() >= before + progress;
            },
            60s);
        std::vector<pid_t> ranks;
        for (const auto pid : job.descendants())
            if (has(read_file("/proc/" + std::to_string(pid) + "/comm"), "04_train_gpt"))
                ranks.push_back(pid);
        if (ranks.empty()) continue;
        ::kill(ranks[std::uniform_int_distribution<std::size_t>(0, ranks.size() - 1)(random)],
               SIGKILL);
        job.wait_until(
            [&] {
                return count_of(job.errors(), "restart " + std::to_string(kill + 1) + " of 3") >
                           0 ||
                       job.wait(0ms);
            },
            20s);
    }
    REQUIRE(job.wait(120s) == 0);
    CHECK(read_file(disturbed.file("loss")) == curve);
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE(
    "04_train_gpt: Ctrl-C or TERM saves at a step boundary, and the next start continues the "
    "curve") {
    const int signal = GENERATE(SIGTERM, SIGINT);
    if (!std::filesystem::exists(example("04_train_gpt"))) {
        WARN("skipped: 04_train_gpt is not built (no OpenBLAS)");
        return;
    }
    TemporaryDirectory undisturbed, disturbed;
    const int steps = 80;
    REQUIRE(run_ddrun(small_gpt(undisturbed.path(), steps, {"--nproc-per-node=2"}), 120s).code ==
            0);
    {
        Program job(ddrun_with(small_gpt(disturbed.path(), steps, {"--nproc-per-node=2"})));
        REQUIRE(job.wait_until(
            [&] { return lines_of(read_file(disturbed.file("loss"))).size() >= 7; }, 60s));
        job.send_signal(signal);
        CHECK(job.wait(20s) == 128 + signal);
    }
    CHECK(has(read_file(disturbed.file("loss")), "\n"));
    REQUIRE(run_ddrun(small_gpt(disturbed.path(), steps, {"--nproc-per-node=2"}), 120s).code == 0);
    CHECK(read_file(disturbed.file("loss")) == read_file(undisturbed.file("loss")));
}
