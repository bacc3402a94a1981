// `srun ddrun ./train` on a real cluster, with no flag about nodes or endpoints.
#include "tests/support/slurm.hpp"

#include "tests/support/catch.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

using namespace ddrun::test;

namespace {

std::string example(const std::string& name) {
    return std::string(DDRUN_BUILD_DIR) + "/examples/" + name + "/" + name;
}

// One cluster for all tests: it takes a second to come up, and jobs must not disturb it anyway.
const SlurmCluster& cluster() {
    static const SlurmCluster four(4);
    return four;
}

void write_script(const std::string& path, const std::string& text) {
    write_file(path, text);
    ::chmod(path.c_str(), 0755);
}

bool comes_true(const std::function<bool()>& condition, Milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        ::usleep(20'000);
    }
    return true;
}

}  // namespace

TEST_CASE("SDK workers of four nodes find each other") {
    DDRUN_NEEDS_SLURM();
    const auto end = cluster().run(cluster().srun_ddrun({"-N4"}, {example("01_hello_ranks")}));
    INFO(end.output << end.errors);
    CHECK(end.code == 0);
    CHECK(count_of(end.output, "hello from rank") == 4);
    CHECK(has(end.output, "all here: r0 r1 r2 r3"));
    for (int node = 1; node <= 4; ++node)  // in Slurm's order
        CHECK(has(end.output, "[n" + std::to_string(node) + ":" + std::to_string(node - 1) + "]"));
    CHECK(cluster().all_idle(10s));
}

TEST_CASE("an unmodified PyTorch script reduces over two nodes of two workers") {
    DDRUN_NEEDS_SLURM();
    if (!std::filesystem::exists("/usr/lib/python3/dist-packages/torch/__init__.py")) {
        WARN("skipped: no PyTorch here (Debian: python3-torch)");
        return;
    }
    const std::string script = cluster().directory() + "/reduce.py";
    write_file(script,
               "import torch, torch.distributed as d\n"
               "d.init_process_group('gloo')\n"
               "t = torch.ones(1) * (d.get_rank() + 1)\n"
               "d.all_reduce(t)\n"
               "print('sum', t.item(), 'of', d.get_world_size(), flush=True)\n");
    const auto end = cluster().run(cluster().srun_ddrun(
        {"-N2", "--export=ALL,PYTHON_EXEC=/usr/bin/python3"}, {"--nproc-per-node=2", script}));
    INFO(end.output << end.errors);
    CHECK(end.code == 0);
    CHECK(count_of(end.output, "sum 10.0 of 4") == 4);
}

TEST_CASE("SLURM-1: srun that starts ddrun twice on a node is told so, everywhere") {
    DDRUN_NEEDS_SLURM();
    const auto end = cluster().run(
        {"srun", "-N2", "--ntasks-per-node=2", ddrun_path(), "--nproc-per-node=2", "true"});
    CHECK(end.code == 2);
    CHECK(count_of(end.errors, "srun started 2 ddrun per node") == 4);
}

TEST_CASE("two steps of one job run at once and do not meet") {
    DDRUN_NEEDS_SLURM();
    const std::string script = cluster().directory() + "/two.sh";
    std::string text = "#!/bin/sh\n";
    for (const char* step : {"a", "b"})
        text += "srun -N4 --ntasks-per-node=1 --overlap " + ddrun_path() + " " +
                example("01_hello_ranks") + " > two." + step + " 2>&1 &\n";
    write_script(script, text + "wait\n");
    const auto end = cluster().run({"sbatch", "--wait", "-N4", script});
    INFO(end.output << end.errors);
    CHECK(end.code == 0);
    for (const char* step : {"two.a", "two.b"}) {
        const std::string said = read_file(cluster().directory() + "/" + step);
        INFO(said);
        CHECK(count_of(said, "hello from rank") == 4);
    }
}

TEST_CASE("SLURM-6: scancel stops every worker with its grace, and nothing is left") {
    DDRUN_NEEDS_SLURM();
    const auto step = cluster().start(cluster().srun_ddrun(
        {"-N2", "--job-name=long"},
        {"sh", "-c", "trap 'echo saving; exit 0' TERM; echo up; while :; do sleep 0.1; done"}));
    REQUIRE(step->wait_until([&] { return count_of(step->output(), "up") == 2; }, 20s));
    CHECK(cluster().run({"scancel", "--name=long"}).code == 0);
    CHECK(step->wait(10s) == 143);
    CHECK(count_of(step->output(), "saving") == 2);
    CHECK(step->leaves_nothing(2s));
    CHECK(cluster().all_idle(10s));
}

TEST_CASE("a ddrun killed on one node ends the step on all, with one code") {
    DDRUN_NEEDS_SLURM();
    const auto step = cluster().start(
        cluster().srun_ddrun({"-N2", "--kill-on-bad-exit=0"},
                             {"--heartbeat=200ms", "--lease=3s", "--rendezvous-grace=4s", "sh",
                              "-c", "echo up $PPID; sleep 60"}));
    REQUIRE(step->wait_until([&] { return count_of(step->output(), "up ") == 2; }, 20s));
    pid_t agent = 0;
    for (const pid_t pid : step->descendants()) {
        std::string name = read_file("/proc/" + std::to_string(pid) + "/comm");
        if (name == "ddrun\n") agent = pid;
    }
    REQUIRE(agent > 0);
    ::kill(agent, SIGKILL);
    const auto code = step->wait(20s);
    INFO(step->output() << step->errors());
    REQUIRE(code);
    CHECK(*code != 0);
    CHECK(step->leaves_nothing(2s));
}

TEST_CASE("in an allocation with --no-kill a spare node takes the place of a lost one") {
    DDRUN_NEEDS_SLURM();
    const std::string go = cluster().directory() + "/go";
    const auto step = cluster().start(
        cluster().srun_ddrun({"-N4", "--no-kill", "--kill-on-bad-exit=0"},
                             {"--nnodes=3", "--spares=1", "--max-restarts=1", "--restart-backoff=0",
                              "--heartbeat=200ms", "--lease=3s", "sh", "-c",
                              "echo here $RANK attempt $TORCHELASTIC_RESTART_COUNT on $(hostname); "
                              "until [ -e " +
                                  go + " ]; do sleep 0.1; done"}));
    REQUIRE(step->wait_until([&] { return count_of(step->output(), "attempt 0") == 3; }, 20s));
    // Whichever node came too late for a place is the spare; rank 1's is the one to lose.
    const std::size_t place = step->output().find("here 1 attempt 0 on ");
    REQUIRE(place != std::string::npos);
    const std::string lost = step->output().substr(place + 20, 2);
    for (const pid_t pid : step->descendants()) {
        const std::string process = "/proc/" + std::to_string(pid);
        if (read_file(process + "/comm") != "ddrun\n") continue;
        if (has(read_file(process + "/environ"), "SLURMD_NODENAME=" + lost)) ::kill(pid, SIGKILL);
    }
    const bool replaced =
        step->wait_until([&] { return count_of(step->output(), "attempt 1") == 3; }, 20s);
    write_file(go, "");
    const auto code = step->wait(20s);
    INFO(step->output() << step->errors());
    CHECK(replaced);
    CHECK(code);
    CHECK(has(step->output(), "here 1 attempt 1 on n"));
    CHECK_FALSE(has(step->output(), "attempt 1 on " + lost));
    CHECK(step->leaves_nothing(2s));
    std::filesystem::remove(go);
}

TEST_CASE("SLURM-6: a requeued job is a new run that goes on from its checkpoint") {
    DDRUN_NEEDS_SLURM();
    if (!std::filesystem::exists(example("04_train_gpt"))) {
        WARN("skipped: 04_train_gpt is not built (no OpenBLAS)");
        return;
    }
    const std::string script = cluster().directory() + "/train.sh";
    const std::string loss = cluster().directory() + "/loss";
    const std::size_t steps = 400;
    write_script(script, "#!/bin/sh\nsrun --ntasks-per-node=1 " + ddrun_path() + " " +
                             example("04_train_gpt") +
                             " --width=64 --layers=2 --heads=2 --context=64 --global-batch=16 "
                             "--checkpoint-every=5 --warmup=10 --sample=0 --steps=" +
                             std::to_string(steps) +
                             " --checkpoint-dir=checkpoints --loss-file=loss\n");
    const auto job = cluster().start({"sbatch", "--wait", "--requeue", "--open-mode=append", "-N2",
                                      "--output=train.log", "--job-name=train", script});
    REQUIRE(comes_true(
        [&] {
            return std::filesystem::exists(loss) && lines_of(read_file(loss)).size() > steps / 4;
        },
        40s));
    const auto requeued =
        cluster().run({"sh", "-c", "scontrol requeue $(squeue -h -n train -o %A)"}, 10s);
    INFO(requeued.errors);
    CHECK(requeued.code == 0);
    const auto code = job->wait(90s);
    INFO(read_file(cluster().directory() + "/train.log"));
    CHECK(code == 0);
    const auto curve = lines_of(read_file(loss));
    CHECK(curve.size() == steps);
    CHECK(has(read_file(cluster().directory() + "/train.log"), "going on from the checkpoint"));
    CHECK(cluster().all_idle(10s));
}

TEST_CASE("the sbatch templates run as they are") {
    DDRUN_NEEDS_SLURM();
    const std::string folder = std::string(DDRUN_SOURCE_DIR) + "/packaging/slurm/";
    const std::string bin = cluster().directory() + "/bin";
    std::filesystem::create_directory(bin);
    std::filesystem::create_symlink(ddrun_path(), bin + "/ddrun");
    // Long enough for the last node to come: a spare of a job that is over waits for its join
    // time-out.
    const std::string program = cluster().directory() + "/hello";
    write_script(program, "#!/bin/sh\n" + example("01_hello_ranks") + "; sleep 8\n");
    for (const auto& [file, hellos] :
         {std::pair("one_node.sbatch", 2u), {"many_nodes.sbatch", 8u}, {"spare.sbatch", 6u}}) {
        const auto end = cluster().run(
            {"sbatch", "--wait", "--output=template.log",
             "--export=ALL,WORKERS=2,PATH=" + bin + ":/usr/bin:/bin,PROGRAM=" + program,
             folder + file});
        const std::string said = read_file(cluster().directory() + "/template.log");
        CAPTURE(file, end.errors, said);
        CHECK(end.code == 0);
        CHECK(count_of(said, "hello from rank") == hellos);
    }
}

TEST_CASE("the secret is in nobody's arguments, environment or log") {
    DDRUN_NEEDS_SLURM();
    const auto end = cluster().run(cluster().srun_ddrun(
        {"-N2"}, {"-v", "sh", "-c", "env; tr '\\0' ' ' < /proc/$PPID/cmdline"}));
    CHECK(end.code == 0);
    for (const char* trace : {"SECRET", "MUNGE:"}) {
        CHECK_FALSE(has(end.output, trace));
        CHECK_FALSE(has(end.errors, trace));
    }
}
