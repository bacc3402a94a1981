#include "tests/unit/config/loading.hpp"

#include <algorithm>

using namespace ddrun;
using namespace ddrun::launcher;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

bool has(const std::vector<std::string>& lines, const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
}

}  // namespace

TEST_CASE("ARG-5 flag, then DDRUN_*, then PET_*, then the job file, then the default") {
    const Files file = file_of("max-restarts: 1\n");
    Variables environment;
    Words words = {"x"};
    CHECK(spec(words, environment).max_restarts == 0);
    words.insert(words.begin(), "--config=job.yaml");
    CHECK(spec(words, environment, file).max_restarts == 1);
    environment["PET_MAX_RESTARTS"] = "2";
    CHECK(spec(words, environment, file).max_restarts == 2);
    environment["DDRUN_MAX_RESTARTS"] = "3";
    CHECK(spec(words, environment, file).max_restarts == 3);
    words.insert(words.begin(), "--max-restarts=4");
    CHECK(spec(words, environment, file).max_restarts == 4);
    CHECK(job(words, environment, file).sources.place_of("max-restarts") == "--max-restarts");
}

TEST_CASE("the order on the command line does not matter for a job file") {
    CHECK(spec({"--max-restarts=4", "--config=job.yaml", "x"}, {}, file_of("max-restarts: 1\n"))
              .max_restarts == 4);
}

TEST_CASE("ARG-5 stale variables of a worker never change the size") {
    const Variables stale = {
        {"RANK", "7"}, {"WORLD_SIZE", "99"}, {"LOCAL_RANK", "5"}, {"MASTER_PORT", "1"}};
    CHECK(spec({"--nproc-per-node=2", "env"}, stale) == spec({"--nproc-per-node=2", "env"}));
}

TEST_CASE("ARG-5 each value from outside the command line is told at -v") {
    const JobConfig config =
        job({"--config=job.yaml", "--tee=3", "x"},
            {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "3"}, {"DDRUN_TEE", "1"}},
            file_of("role: r\nmax-restarts: 2\n"));
    CHECK(has(config.notes, "nnodes=1 from PET_NNODES"));
    CHECK(has(config.notes, "nproc-per-node=3 from PET_NPROC_PER_NODE"));
    CHECK(has(config.notes, "max-restarts=2 from job.yaml:2:15"));
    CHECK(config.notes.size() == 4);
}

TEST_CASE("ARG-5 a job of several nodes in the environment needs a place to meet") {
    CHECK_THAT(refusal({"prog"}, {{"PET_NNODES", "2"}}), Contains("PET_NNODES: a job of several"));
    CHECK_THAT(refusal({"--nnodes=1:4", "prog"}), Contains("--rdzv-endpoint=HOST[:PORT]"));
    CHECK_THAT(refusal({"--spares=1", "prog"}), Contains("--spares: a job of several"));
    CHECK(spec({"--nnodes=1", "prog"}, {{"PET_NNODES", "2"}}).max_nodes == 1);
}

TEST_CASE("several nodes meet at the endpoint, or at the master's host") {
    const JobSpec named = spec({"--nnodes=2", "--rdzv-endpoint=n0:4711", "x"});
    CHECK(named.rendezvous_host == "n0");
    CHECK(named.rendezvous_port == 4711);
    CHECK_FALSE(named.master_port);
    CHECK(spec({"--nnodes=2", "--rdzv-endpoint=fd00::1", "x"}).rendezvous_port == 29400);
    CHECK(spec({"--nnodes=2", "--rdzv-endpoint=n0", "--rdzv-port=9", "x"}).rendezvous_port == 9);
    const JobSpec fixed = spec({"--nnodes=2", "--master-addr=n0", "--master-port=29500", "x"});
    CHECK(fixed.rendezvous_host == "n0");
    CHECK(fixed.rendezvous_port == 29400);
    CHECK(fixed.master_port == 29500);
    CHECK_THAT(refusal({"--nnodes=2", "--rdzv-endpoint=n0:0", "x"}), Contains("port 0"));
}

TEST_CASE("torchrun's times are ours unless ours are given") {
    const char* conf = "--rdzv-conf=timeout=900,last_call_timeout=5";
    const JobSpec job = spec({"--nnodes=2", "--rdzv-endpoint=n0", conf, "x"});
    CHECK(job.join_timeout == 900s);
    CHECK(job.last_call == 5s);
    CHECK(spec({"--nnodes=2", "--rdzv-endpoint=n0", conf, "--join-timeout=7s", "x"}).join_timeout ==
          7s);
}

TEST_CASE("a lease is some heartbeats long, and one address is chosen once") {
    CHECK_THAT(refusal({"--lease=2s", "x"}), Contains("--lease: a lease is at least 3 times"));
    CHECK_THAT(refusal({"--local-addr=a", "--interface=ib0", "x"}), Contains("leave one out"));
}

TEST_CASE("variables of several entries hold one a line") {
    const JobSpec job = spec({"x"}, {{"DDRUN_ENV", "A=1,2\nB=b c\n"}});
    CHECK(job.extra_env == decltype(job.extra_env){{"A", "1,2"}, {"B", "b c"}});
}

TEST_CASE("--env merges by name, and the stronger source wins") {
    const JobSpec job =
        spec({"--config=job.yaml", "--env", "B=flag", "--env=D=", "x"},
             {{"DDRUN_ENV", "B=variable\nC=variable"}}, file_of("env: {A: file, B: file}\n"));
    CHECK(job.extra_env ==
          decltype(job.extra_env){{"A", "file"}, {"B", "flag"}, {"C", "variable"}, {"D", ""}});
}

TEST_CASE("a variable of ours that nobody knows gets a warning") {
    const JobConfig config = job({"x"}, {{"DDRUN_NPROC", "4"},
                                         {"DDRUN_ZZZ", "1"},
                                         {"PET_NNODE", "1"},
                                         {"PET_CARE", "1"},
                                         {"DDRUN_SECRET", "s"}});
    CHECK(has(config.warnings,
              "DDRUN_NPROC is not a variable of ddrun; did you mean DDRUN_NPROC_PER_NODE?"));
    CHECK(has(config.warnings, "DDRUN_ZZZ is not a variable of ddrun"));
    CHECK(has(config.warnings, "PET_NNODE is not a variable of ddrun; did you mean PET_NNODES?"));
    CHECK(config.warnings.size() == 3);
}

TEST_CASE("inside a worker, the worker's own variables are not options") {
    WorkerEnv outer;
    outer.node_rank = 3;
    outer.log_dir = "/outer/logs";
    outer.agent_socket = "@outer";
    outer.node_name = "n3";
    Variables environment = to_variables(outer);
    const JobConfig config = job({"x"}, environment);
    CHECK(config.spec == spec({"x"}));
    CHECK(config.warnings.empty());
    CHECK(config.notes.empty());
    environment = {{"DDRUN_LOG_DIR", "/mine"}};
    CHECK(spec({"x"}, environment).log_dir == "/mine");
}

TEST_CASE("torchrun's other names for a value count least of the variables") {
    Variables environment = {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}};
    CHECK(spec({"x"}, environment).shutdown_timeout == 7s);
    environment["PET_SHUTDOWN_TIMEOUT"] = "8";
    CHECK(spec({"x"}, environment).shutdown_timeout == 8s);
}

TEST_CASE("a scheduler shortens the default grace, and nothing that was given") {
    CHECK(spec({"x"}).shutdown_timeout == 30s);
    const Variables slurm = {{"SLURM_JOB_ID", "1"}};
    CHECK(spec({"x"}, slurm).shutdown_timeout == 25s);
    CHECK(spec({"x"}, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}).shutdown_timeout == 25s);
    CHECK(spec({"--config=job.yaml", "x"}, slurm, file_of("shutdown-timeout: 40s"))
              .shutdown_timeout == 40s);
    CHECK(job({"x"}, slurm).sources.place_of("shutdown-timeout") == "Slurm (SLURM_JOB_ID is set)");
}

TEST_CASE("flags without effect on one node say so at -v") {
    const JobConfig config = job({"--rdzv-backend=c10d", "--monitor-interval=5",
                                  "--start-method=fork", "--event-log-handler=null", "x"});
    CHECK(config.spec == spec({"x"}));
    REQUIRE(config.notes.size() == 4);
    CHECK(config.notes[0] ==
          "rdzv-backend=c10d changes nothing: every backend is ddrun's own rendezvous");
}

TEST_CASE("torchrun's words for the rendezvous choose MASTER_ADDR and MASTER_PORT") {
    CHECK_FALSE(spec({"x"}).master_port);
    CHECK(spec({"--rdzv-endpoint=localhost:29400", "x"}).master_port == 29400);
    CHECK_FALSE(spec({"--rdzv-endpoint=localhost:0", "x"}).master_port);
    CHECK(spec({"--rdzv-endpoint=localhost:1", "--master-port=2", "x"}).master_port == 2);
    CHECK(spec({"--local-addr=10.0.0.1", "x"}).master_addr == "10.0.0.1");
    CHECK(spec({"--local-addr=10.0.0.1", "--master-addr=[::1]", "x"}).master_addr == "::1");
    const JobConfig alone =
        job({"--standalone", "--rdzv-endpoint=h:1", "--rdzv-backend=c10d", "x"});
    CHECK_FALSE(alone.spec.master_port);
    CHECK(alone.spec.job_id.empty());
    CHECK(has(alone.notes, "--rdzv-endpoint is ignored: --standalone was given"));
    CHECK(spec({"--standalone", "--rdzv-id=7", "x"}).job_id == "7");
}

TEST_CASE("how the program is started") {
    CHECK(spec({"x.py"}).kind == ProgramKind::automatic);
    CHECK(spec({"--no-python", "x.py"}).kind == ProgramKind::execute);
    CHECK(spec({"--run-path", "x"}).kind == ProgramKind::script);
    CHECK(spec({"-m", "pkg.x"}).kind == ProgramKind::module);
    CHECK_THAT(refusal({"-m", "--no-python", "x"}),
               Contains("-m and --no-python contradict each other"));
    CHECK_THAT(refusal({"--no-python", "x"}, {{"PET_MODULE", "1"}}),
               Contains("PET_MODULE and --no-python contradict each other"));
    CHECK(spec({"--no-python", "--module=0", "x"}, {{"PET_MODULE", "1"}}).kind ==
          ProgramKind::execute);
}
