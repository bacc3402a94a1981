#include "launcher/core/worker_plan.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun;
using namespace ddrun::launcher;

namespace {

MachineFacts machine(int cpus = 8) {
    MachineFacts facts;
    facts.node_name = "n0";
    facts.python = "/venv/bin/python3";
    for (int cpu = 0; cpu < cpus; ++cpu) facts.allowed_cpus.push_back(cpu);
    return facts;
}

JobSpec job(std::string program, std::vector<std::string> arguments = {}) {
    JobSpec spec;
    spec.program = std::move(program);
    spec.arguments = std::move(arguments);
    return spec;
}

std::vector<WorkerPlan> plan(const JobSpec& spec, const MachineFacts& facts, int workers,
                             int first_rank = 0) {
    rendezvous::RoundGranted grant;
    grant.round = 3;
    grant.restart_count = 2;
    grant.first_rank = first_rank;
    grant.world_size = first_rank + workers;
    grant.node_rank = first_rank > 0 ? 1 : 0;
    grant.node_count = first_rank > 0 ? 2 : 1;
    grant.master_addr = "127.0.0.1";
    grant.master_port = 40001;
    RoundFacts round;
    round.job_id = "j1";
    round.incarnation = "abc";
    round.agent_socket = "@ddrun-1";
    round.log_dir = "/logs/2";
    round.local_world_size = workers;
    return plan_workers(spec, facts, grant, round);
}

}  // namespace

TEST_CASE("ARG-1, ARG-2: arguments reach the worker byte for byte") {
    const std::vector<std::string> odd = {"",
                                          "a b",
                                          "I'm",
                                          "72\" tall",
                                          "x\ny",
                                          "*",
                                          "--",
                                          "$HOME",
                                          "--help",
                                          "-4C",
                                          "--p=a b",
                                          "\xff\xfe",
                                          std::string(100'000, 'x'),
                                          "${local_rank}"};
    auto expected = odd;
    expected.insert(expected.begin(), "./train");
    CHECK(plan(job("./train", odd), machine(), 2)[1].argv == expected);
}

TEST_CASE(
    "a binary is executed; a .py file runs under the active Python, unbuffered; -m names a "
    "module") {
    using Words = std::vector<std::string>;
    auto argv = [](JobSpec spec, ProgramKind kind) {
        spec.kind = kind;
        return plan(spec, machine(), 1)[0].argv;
    };
    CHECK(argv(job("./train", {"a"}), ProgramKind::automatic) == Words{"./train", "a"});
    CHECK(argv(job("train.py", {"a"}), ProgramKind::automatic) ==
          Words{"/venv/bin/python3", "-u", "train.py", "a"});
    CHECK(argv(job(".py"), ProgramKind::automatic) == Words{".py"});
    CHECK(argv(job("train.py"), ProgramKind::execute) == Words{"train.py"});
    CHECK(argv(job("pkg.train"), ProgramKind::module) ==
          Words{"/venv/bin/python3", "-u", "-m", "pkg.train"});
    CHECK(argv(job("folder"), ProgramKind::script) == Words{"/venv/bin/python3", "-u", "folder"});
}

TEST_CASE("--prefix-command wraps chosen global ranks; the last entry that names a rank counts") {
    auto spec = job("train.py");
    spec.prefix_commands = {{RankSet{}, {"nice"}}, {RankSet{{{4, 4}}}, {"gdb", "--args"}}};
    const auto plans = plan(spec, machine(), 2, 4);
    CHECK(plans[0].argv ==
          std::vector<std::string>{"gdb", "--args", "/venv/bin/python3", "-u", "train.py"});
    CHECK(plans[1].argv.front() == "nice");
}

TEST_CASE("ARG-6: the local-rank flag comes first, after the program, and only when asked for") {
    auto spec = job("train.py", {"x"});
    spec.local_rank_flag = "--local_rank";
    CHECK(plan(spec, machine(), 2)[1].argv ==
          std::vector<std::string>{"/venv/bin/python3", "-u", "train.py", "--local_rank=1", "x"});
}

TEST_CASE("every worker is told who it is, in torchrun's words and in ours") {
    const auto plans = plan(job("./train"), machine(), 2, 2);
    const auto& env = plans[1].environment;
    const Variables expected = {{"RANK", "3"},
                                {"WORLD_SIZE", "4"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"GROUP_RANK", "1"},
                                {"GROUP_WORLD_SIZE", "2"},
                                {"ROLE_NAME", "default"},
                                {"ROLE_RANK", "3"},
                                {"ROLE_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", "40001"},
                                {"TORCHELASTIC_RESTART_COUNT", "2"},
                                {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                {"TORCHELASTIC_RUN_ID", "j1"},
                                {"TORCHELASTIC_ERROR_FILE", "/logs/2/3/error.json"},
                                {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                {"DDRUN_ROUND", "3"},
                                {"DDRUN_NODE_NAME", "n0"},
                                {"DDRUN_AGENT_SOCKET", "@ddrun-1"},
                                {"DDRUN_WORKER_TAG", "abc.3.3"},
                                {"DDRUN_LOG_DIR", "/logs/2"}};
    for (const auto& [name, value] : expected) {
        CAPTURE(name);
        REQUIRE(env.contains(name));
        CHECK(env.at(name) == value);
    }
    CHECK(plans[1].rank == 3);
    CHECK(plans[1].local_rank == 1);
}

TEST_CASE("ARG-5: nothing that an outer launcher said reaches a worker, everything else does") {
    auto facts = machine();
    WorkerEnv full;
    full.agent_socket = full.error_file = full.log_dir = "x";
    for (const auto& [name, value] : to_variables(full)) facts.environment[name] = "stale";
    for (const char* name : {"TORCHELASTIC_SIGNALS_TO_HANDLE", "TORCHELASTIC_TIMER_FILE",
                             "DDRUN_SECRET", "DDRUN_SECRET_FILE"}) {
        facts.environment[name] = "stale";
    }
    facts.environment["HOME"] = "/home/me";
    facts.environment["https_proxy"] = "http://127.0.0.1:1";
    facts.environment["EMPTY"] = "";
    rendezvous::RoundGranted grant;
    const auto plans = plan_workers(job("./train"), facts, grant, RoundFacts{});
    REQUIRE(plans.size() == 1);
    for (const auto& [name, value] : plans[0].environment) {
        CAPTURE(name);
        CHECK(value != "stale");
    }
    CHECK_FALSE(plans[0].environment.contains("DDRUN_SECRET"));
    CHECK_FALSE(plans[0].environment.contains("DDRUN_LOG_DIR"));
    CHECK(plans[0].environment.at("HOME") == "/home/me");
    CHECK(plans[0].environment.at("https_proxy") == "http://127.0.0.1:1");
    CHECK(plans[0].environment.at("EMPTY").empty());
}

TEST_CASE("--env has the last word") {
    auto facts = machine();
    facts.environment = {{"A", "parent"}, {"OMP_NUM_THREADS", "3"}};
    auto spec = job("./train");
    spec.extra_env = {{"A", "first"}, {"A", "second"}, {"OMP_NUM_THREADS", "5"}, {"B", "x=y"}};
    const auto env = plan(spec, facts, 2)[0].environment;
    CHECK(env.at("A") == "second");
    CHECK(env.at("OMP_NUM_THREADS") == "5");
    CHECK(env.at("B") == "x=y");
}

TEST_CASE("RES-4: OMP_NUM_THREADS shares the CPUs, unless the user chose or is alone") {
    auto threads = [](MachineFacts facts, int workers) {
        const auto env = plan(job("./train"), facts, workers)[0].environment;
        return env.contains("OMP_NUM_THREADS") ? env.at("OMP_NUM_THREADS") : "(unset)";
    };
    CHECK(threads(machine(8), 4) == "2");
    CHECK(threads(machine(2), 4) == "1");
    CHECK(threads(machine(8), 1) == "(unset)");
    auto limited = machine(64);
    limited.cgroup_cpu_limit = 8;
    CHECK(threads(limited, 4) == "2");
    for (const char* chosen : {"7", ""}) {
        auto facts = machine();
        facts.environment["OMP_NUM_THREADS"] = chosen;
        CHECK(threads(facts, 4) == chosen);
    }
}

TEST_CASE("LOG-5: PYTHONUNBUFFERED=1 unless the user set it") {
    CHECK(plan(job("x.py"), machine(), 1)[0].environment.at("PYTHONUNBUFFERED") == "1");
    auto facts = machine();
    facts.environment["PYTHONUNBUFFERED"] = "";
    CHECK(plan(job("x.py"), facts, 1)[0].environment.at("PYTHONUNBUFFERED").empty());
}

TEST_CASE("RES-1: CUDA_VISIBLE_DEVICES reaches the workers unchanged, whatever is in it") {
    for (const char* list : {"GPU-8932f937,GPU-1", "MIG-cfb2a8ae-1", "2,3", " 2, 3 ", "", "-1",
                             "0,0", "0,2,-1,1", "none"}) {
        CAPTURE(list);
        auto facts = machine();
        facts.environment["CUDA_VISIBLE_DEVICES"] = list;
        for (const auto& worker : plan(job("./train"), facts, 2)) {
            CHECK(worker.environment.at("CUDA_VISIBLE_DEVICES") == list);
        }
    }
    CHECK_FALSE(plan(job("./train"), machine(), 2)[0].environment.contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("RES-1: per-rank binding gives entry i verbatim, never renumbered") {
    auto devices = [](const char* list, int workers) {
        auto facts = machine();
        facts.environment["CUDA_VISIBLE_DEVICES"] = list;
        auto spec = job("./train");
        spec.gpu_binding = GpuBinding::per_rank;
        std::vector<std::string> seen;
        for (const auto& worker : plan(spec, facts, workers)) {
            seen.push_back(worker.environment.at("CUDA_VISIBLE_DEVICES"));
            CHECK(worker.environment.at("LOCAL_RANK") == std::to_string(worker.local_rank));
        }
        return seen;
    };
    using Words = std::vector<std::string>;
    CHECK(devices("GPU-8932f937,GPU-1", 2) == Words{"GPU-8932f937", "GPU-1"});
    CHECK(devices(" 6, 7 ", 2) == Words{"6", "7"});
    CHECK(devices("4,5", 3) == Words{"4", "5", ""});  // rank 2 must not see the device of another
    auto facts = machine();
    facts.device_nodes = 4;
    auto spec = job("./train");
    spec.gpu_binding = GpuBinding::per_rank;
    CHECK(plan(spec, facts, 2)[1].environment.at("CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE("--virtual-local-rank: every worker is local rank 0 and sees its own GPU only") {
    auto facts = machine();
    facts.environment["CUDA_VISIBLE_DEVICES"] = "6,7";
    auto spec = job("./train");
    spec.virtual_local_rank = true;
    spec.local_rank_flag = "--local-rank";
    const auto plans = plan(spec, facts, 2);
    for (const auto& worker : plans) {
        CHECK(worker.environment.at("LOCAL_RANK") == "0");
        CHECK(worker.environment.at("LOCAL_WORLD_SIZE") == "2");
        CHECK(worker.argv.at(1) == "--local-rank=0");
    }
    CHECK(plans[1].local_rank == 1);
    CHECK(plans[1].environment.at("RANK") == "1");
    CHECK(plans[0].environment.at("CUDA_VISIBLE_DEVICES") == "6");
    CHECK(plans[1].environment.at("CUDA_VISIBLE_DEVICES") == "7");
    CHECK(plan(spec, machine(), 2)[1].environment.at("LOCAL_RANK") == "0");
}

TEST_CASE("--gpus is CUDA_VISIBLE_DEVICES for the job, verbatim") {
    auto facts = machine();
    facts.environment["CUDA_VISIBLE_DEVICES"] = "0,1,2,3";
    auto spec = job("./train");
    spec.gpus = "2, 3";
    CHECK(plan(spec, facts, 2)[1].environment.at("CUDA_VISIBLE_DEVICES") == "2, 3");
    spec.gpu_binding = GpuBinding::per_rank;
    CHECK(plan(spec, facts, 2)[1].environment.at("CUDA_VISIBLE_DEVICES") == "3");
}

TEST_CASE("one rank owns the terminal") {
    auto spec = job("./train");
    spec.stdin_rank = 5;
    const auto plans = plan(spec, machine(), 2, 4);
    CHECK_FALSE(plans[0].owns_stdin);
    CHECK(plans[1].owns_stdin);
}
