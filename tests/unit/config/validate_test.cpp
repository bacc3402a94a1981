#include "launcher/core/validate.hpp"
#include "tests/unit/config/loading.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

const NameOf flag = [](std::string_view option) { return "--" + std::string(option); };

JobSpec four_workers() {
    JobSpec spec;
    spec.program = "x";
    spec.slots = {SlotSource::number, 4};
    return spec;
}

}  // namespace

TEST_CASE("a sound specification has no problems") {
    CHECK(validate(four_workers(), flag).empty());
}

TEST_CASE("a rank that no worker has is named with the number of workers") {
    JobSpec spec = four_workers();
    spec.stdin_rank = 4;
    CHECK(validate(spec, flag) ==
          std::vector<std::string>{
              "--stdin: there is no rank 4; --nproc-per-node makes 4 workers, ranks 0 to 3"});
    spec.stdin_rank = 3;
    CHECK(validate(spec, flag).empty());
}

TEST_CASE("every flag that names ranks is checked") {
    for (const char* words : {"--prefix-command=2:gdb", "--redirects=1:1,2:1", "--tee=2-5:1",
                              "--local-ranks-filter=2", "--ranks-filter=0,2", "--stdin=2"}) {
        CAPTURE(words);
        CHECK_THAT(refusal({"--nproc-per-node=2", words, "x"}), Contains("there is no rank 2; "));
    }
}

TEST_CASE("a range may reach beyond the last rank, not begin there") {
    CHECK(spec({"--nproc-per-node=2", "--tee=0-7:3", "x"}).tee.for_rank(1) == Streams::both);
}

TEST_CASE("ranks are checked later when the number of workers is not known yet") {
    const JobSpec open = spec({"--nproc-per-node=auto", "--stdin=9", "x"});
    CHECK(validate_ranks(open, 10, flag).empty());
    CHECK(validate_ranks(open, 1, flag) ==
          std::vector<std::string>{
              "--stdin: there is no rank 9; --nproc-per-node makes 1 worker, rank 0"});
}

TEST_CASE("both names in a contradiction are where the user wrote them") {
    CHECK_THAT(
        refusal({"--config=job.yaml", "x"}, {{"PET_NPROC_PER_NODE", "2"}}, file_of("stdin: 5")),
        Contains("job.yaml:1:8: stdin: there is no rank 5; PET_NPROC_PER_NODE makes 2 workers"));
}

TEST_CASE("a node rank beyond the nodes") {
    CHECK(spec({"--node-rank=0", "x"}).node_rank == 0);
    CHECK_THAT(refusal({"--node-rank=1", "x"}),
               Contains("--node-rank: 1 is too high for a job of 1 node; give 0 or leave it out"));
}

TEST_CASE("variables that tell a worker who it is cannot be given") {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "DDRUN_AGENT_SOCKET", "DDRUN_WORKER_TAG"}) {
        CAPTURE(name);
        CHECK_THAT(refusal({std::string("--env=") + name + "=1", "x"}),
                   Contains(std::string(name) + " is set by ddrun for each worker"));
    }
    CHECK_THAT(refusal({"--env=MASTER_PORT=1", "x"}), Contains("; use --master-port"));
    CHECK(spec({"--env=OMP_NUM_THREADS=2", "x"}).extra_env.size() == 1);
}

TEST_CASE("a path is not a module") {
    CHECK_THAT(refusal({"-m", "./train.py"}), Contains("-m: './train.py' is a path, not a module"));
}

TEST_CASE("nodes of a static launch and their workers cannot meet at one port") {
    CHECK_THAT(refusal({"--nnodes=2", "--master-addr=n0", "--master-port=29400", "x"}),
               Contains("--master-port: at port 29400 the nodes meet") &&
                   Contains("give --rdzv-port=PORT"));
    const auto moved =
        spec({"--nnodes=2", "--master-addr=n0", "--master-port=29400", "--rdzv-port=29401", "x"});
    CHECK(moved.rendezvous_port == 29401);
    // The nodes may meet at a server of its own, where that port is no worker's.
    CHECK(spec({"--nnodes=2", "--rdzv-endpoint=n0:7", "--master-port=7", "x"}).master_port == 7);
}
