// Group H: arguments and environment; group I: devices, CPUs, limits.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

using namespace ddrun::test;

namespace {

// A worker that prints its argv, NUL-separated, from /proc.
const std::vector<std::string> print_arguments = {"sh", "-c", "cat /proc/$$/cmdline", "probe"};

std::string arguments_seen(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"--nproc-per-node=1", "--log-line-prefix-template=none"};
    command.insert(command.end(), print_arguments.begin(), print_arguments.end());
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_ddrun(command, 10s).output;
}

std::string joined(const std::vector<std::string>& arguments) {
    std::string text;
    for (const auto& argument : arguments) text += argument + '\0';
    return text;
}

std::string value_of(const std::string& output, const std::string& name) {
    const auto at = output.find(" " + name + "=");
    if (at == std::string::npos) return "(unset)";
    const auto begin = at + name.size() + 2;
    return output.substr(begin, output.find('\n', begin) - begin);
}

Finished env_under(std::vector<std::string> flags, std::map<std::string, std::string> env,
                   std::vector<std::string> unset = {}) {
    flags.push_back("env");
    auto invocation = ddrun_with(flags);
    invocation.env = std::move(env);
    invocation.unset = std::move(unset);
    return run(invocation, 10s);
}

}  // namespace

TEST_CASE("ARG-1: everything after the program belongs to the program") {
    const std::vector<std::string> arguments = {"--r=16", "--nnodes=9", "-t", "--log",
                                                "x",      "--help",     "--", "--version"};
    const auto seen = arguments_seen(arguments);
    CHECK(has(seen, joined(arguments)));
}

TEST_CASE("ARG-1: no abbreviations; unknown flags get a suggestion") {
    for (const auto& [flag, meant] :
         std::map<std::string, std::string>{{"--nproc=4", "--nproc-per-node"},
                                            {"--max-restart=1", "--max-restarts"},
                                            {"--logdir=x", "--log-dir"}}) {
        CAPTURE(flag);
        const auto end = run_ddrun({flag, "true"}, 5s);
        CHECK(end.code == 2);
        CHECK(end.seconds < 1);
        CHECK(has(end.errors, meant));
    }
}

TEST_CASE("ARG-2: odd arguments arrive byte for byte") {
    const std::vector<std::string> arguments = {"",  "a b",   "I'm", "72\" tall", "x\ny",
                                                "*", "$HOME", "-4C", "--p=a b",   "\xff\xfe"};
    CHECK(has(arguments_seen(arguments), joined(arguments)));
    const auto long_one =
        run_ddrun({"sh", "-c", "echo ${#1}", "probe", std::string(100'000, 'z')}, 10s);
    CHECK(has(long_one.output, "100000\n"));
}

TEST_CASE("ARG-5: inherited RANK, WORLD_SIZE and friends never reach a worker") {
    const auto end = env_under({"--nproc-per-node=2"}, {{"RANK", "7"},
                                                        {"WORLD_SIZE", "99"},
                                                        {"LOCAL_RANK", "5"},
                                                        {"MASTER_PORT", "1"},
                                                        {"GROUP_RANK", "3"}});
    CHECK(end.code == 0);
    CHECK(has(end.output, "RANK=1\n"));
    CHECK_FALSE(has(end.output, "RANK=7"));
    CHECK_FALSE(has(end.output, "WORLD_SIZE=99"));
    CHECK_FALSE(has(end.output, "MASTER_PORT=1\n"));
}

TEST_CASE("ARG-5: PET_ and DDRUN_ variables are arguments; flags win; DDRUN_ wins over PET_") {
    auto count = [](const Finished& end) { return count_of(end.output, " LOCAL_WORLD_SIZE="); };
    CHECK(count(env_under({}, {{"PET_NPROC_PER_NODE", "3"}})) == 3);
    CHECK(count(env_under({}, {{"PET_NPROC_PER_NODE", "3"}, {"DDRUN_NPROC_PER_NODE", "2"}})) == 2);
    CHECK(count(env_under({"--nproc-per-node=1"}, {{"PET_NPROC_PER_NODE", "3"}})) == 1);
}

TEST_CASE("ARG-5: empty and malformed values name the flag or the variable") {
    for (const char* flag : {"--nnodes=",
                             "--nnodes=2:1",
                             "--nnodes=0",
                             "--nnodes=-1",
                             "--nnodes=2x",
                             "--nnodes=1:2:3",
                             "--nproc-per-node=zwei",
                             "--nproc-per-node=0",
                             "--nproc-per-node=-1",
                             "--max-restarts=x",
                             "--max-restarts=-1",
                             "--shutdown-timeout=soon",
                             "--shutdown-timeout=-1s",
                             "--master-port=65536",
                             "--master-port=abc",
                             "-r=9",
                             "--redirects=1:x",
                             "--local-ranks-filter=a",
                             "--hang-timeout=",
                             "--numa-binding=near",
                             "--signals-to-handle=SIGNOPE",
                             "--stdin=-1",
                             "--env=novalue=",
                             "--rdzv-endpoint=fd00:9::1:29400x"}) {
        const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
        if (name == "--env") continue;
        CAPTURE(flag);
        const auto end = run_ddrun({flag, "true"}, 5s);
        CHECK(end.code == 2);
        CHECK(end.seconds < 1);
        CHECK((has(end.errors, name) || (name == "-r" && has(end.errors, "--redirects"))));
    }
    const auto end = env_under({}, {{"PET_NNODES", ""}});
    CHECK(end.code == 2);
    CHECK(has(end.errors, "PET_NNODES"));
}

TEST_CASE("ARG-5: the whole of the parent's other environment is passed on") {
    const auto end = env_under({}, {{"MY_SETTING", "a b=c"}, {"http_proxy", "http://127.0.0.1:1"}});
    CHECK(value_of(end.output, "MY_SETTING") == "a b=c");
    CHECK(value_of(end.output, "http_proxy") == "http://127.0.0.1:1");
}

TEST_CASE("--env sets variables for the workers") {
    const auto end = env_under({"--env", "A=1", "--env=B=x=y"}, {{"A", "0"}});
    CHECK(value_of(end.output, "A") == "1");
    CHECK(value_of(end.output, "B") == "x=y");
}

TEST_CASE("ARG-6: --local-rank is not injected unless asked") {
    TemporaryDirectory directory;
    const auto script = directory.file("show.py");
    write_file(script, "import sys; print(sys.argv[1:])\n");
    CHECK(has(run_ddrun({script, "a"}).output, "['a']"));
}

TEST_CASE("a .py program runs under Python, unbuffered; -m runs a module; --no-python executes") {
    TemporaryDirectory directory;
    const auto script = directory.file("show.py");
    write_file(script, "import sys, os; print('py', sys.version_info[0], os.environ['RANK'])\n");
    CHECK(has(run_ddrun({"--nproc-per-node=2", script}).output, "py 3 1"));
    CHECK(has(run_ddrun({"-m", "json.tool", "--help"}).output, "usage"));
    CHECK(run_ddrun({"--no-python", script}).code == 126);
}

TEST_CASE("RES-1: CUDA_VISIBLE_DEVICES reaches the workers unchanged, whatever is in it") {
    for (const char* list : {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-1", "MIG-cfb2a8ae-1",
                             "2,3", " 2, 3 ", "", "-1", "0,0", "0,2,-1,1", "none"}) {
        CAPTURE(list);
        const auto end = env_under({"--nproc-per-node=2"}, {{"CUDA_VISIBLE_DEVICES", list}});
        CHECK(end.code == 0);
        CHECK(value_of(end.output, "CUDA_VISIBLE_DEVICES") == list);
    }
}

TEST_CASE("RES-1: --nproc-per-node=gpu counts the list up to the first invalid entry") {
    auto workers = [](const char* list) {
        const auto end = env_under({"--nproc-per-node=gpu"}, {{"CUDA_VISIBLE_DEVICES", list}});
        return end.code == 0 ? static_cast<int>(count_of(end.output, " LOCAL_WORLD_SIZE="))
                             : -end.code;
    };
    CHECK(workers("2,3") == 2);
    CHECK(workers("GPU-1,GPU-2,GPU-3") == 3);
    CHECK(workers("0,2,-1,1") == 2);
    CHECK(workers("") == -2);
    CHECK(workers("-1") == -2);
}

TEST_CASE("RES-2: more workers than visible GPUs is one warning, or an error on request") {
    const auto end = env_under({"--nproc-per-node=6"}, {{"CUDA_VISIBLE_DEVICES", "4,5"}});
    CHECK(end.code == 0);
    CHECK(count_of(end.errors, "CUDA_VISIBLE_DEVICES=4,5") == 1);
    CHECK(env_under({"--nproc-per-node=6", "--require-gpus"}, {{"CUDA_VISIBLE_DEVICES", "4,5"}})
              .code == 2);
    CHECK(env_under({"--nproc-per-node=6"}, {}, {"CUDA_VISIBLE_DEVICES"}).errors.empty());
}

TEST_CASE("RES-4: OMP_NUM_THREADS shares the CPUs, unless the user chose") {
    const auto allowed = ::sysconf(_SC_NPROCESSORS_ONLN);
    const auto shared = env_under({"--nproc-per-node=2"}, {}, {"OMP_NUM_THREADS"});
    CHECK(value_of(shared.output, "OMP_NUM_THREADS") == std::to_string(std::max(1L, allowed / 2)));
    CHECK(value_of(env_under({"--nproc-per-node=4"}, {{"OMP_NUM_THREADS", "7"}}).output,
                   "OMP_NUM_THREADS") == "7");
    CHECK(value_of(env_under({"--nproc-per-node=4"}, {{"OMP_NUM_THREADS", ""}}).output,
                   "OMP_NUM_THREADS")
              .empty());
    CHECK(value_of(env_under({"--nproc-per-node=1"}, {}, {"OMP_NUM_THREADS"}).output,
                   "OMP_NUM_THREADS") == "(unset)");
}

TEST_CASE("RES-6: 256 workers start and end") {
    const auto end = run_ddrun({"--nproc-per-node=256", "true"}, 30s);
    CHECK(end.code == 0);
    CHECK(end.errors.empty());
    CHECK(end.left_nothing);
}

TEST_CASE("RES-6: a low soft limit is raised for ddrun and given back to the workers") {
    auto invocation = ddrun_with({"--nproc-per-node=200", "sh", "-c", "ulimit -n"});
    invocation.before_exec = [] {
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 256;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    };
    const auto end = run(invocation, 30s);
    CHECK(end.code == 0);
    CHECK(count_of(end.output, " 256\n") == 200);
}

TEST_CASE("RES-6: when the system refuses worker k, the started ones are stopped and 71 says why") {
    auto invocation = ddrun_with({"--nproc-per-node=64", "--max-restarts=3", "sleep", "60"});
    invocation.before_exec = [] {
        rlimit limit{64, 64};
        ::setrlimit(RLIMIT_NOFILE, &limit);
    };
    const auto end = run(invocation, 30s);
    CHECK(end.code == 71);
    CHECK(has(end.errors, "of 64"));
    CHECK(end.left_nothing);
}

TEST_CASE("workers inherit no descriptor of ddrun") {
    const auto end = run_ddrun({"--nproc-per-node=1", "--log-line-prefix-template=none", "sh", "-c",
                                "ls /proc/$$/fd; true"},
                               10s);
    CHECK(end.output == "0\n1\n2\n");
}

TEST_CASE("--prefix-command wraps chosen ranks only") {
    const auto end = run_ddrun({"--nproc-per-node=2", "--prefix-command=1:env WRAPPED=yes", "sh",
                                "-c", "echo $RANK wrapped=$WRAPPED"},
                               10s);
    CHECK(has(end.output, "0 wrapped=\n"));
    CHECK(has(end.output, "1 wrapped=yes\n"));
}

TEST_CASE("a job file gives flags and program; its errors have file, line and column") {
    TemporaryDirectory directory;
    const auto file = directory.file("job.yaml");
    write_file(file, "nproc-per-node: 2\nenv:\n  COLOUR: blue\nprogram: env\n");
    const auto end = run_ddrun({"--config", file}, 5s);
    CHECK(end.code == 0);
    CHECK(count_of(end.output, "COLOUR=blue") == 2);
    write_file(file, "nproc-per-node: 2\nmax-restart: 1\nprogram: env\n");
    const auto bad = run_ddrun({"--config", file}, 5s);
    CHECK(bad.code == 2);
    CHECK(has(bad.errors, file + ":2:1"));
    CHECK(has(bad.errors, "max-restarts"));
}

TEST_CASE("--print-config, --dry-run, --help and --version start nothing") {
    const auto config =
        run_ddrun({"--nproc-per-node=3", "--print-config", "sh", "-c", "echo STARTED"}, 5s);
    CHECK(config.code == 0);
    CHECK(has(config.output, "nproc-per-node"));
    CHECK(has(config.output, "flag"));
    const auto dry = run_ddrun({"--nproc-per-node=3", "--dry-run", "sh", "-c", "echo STARTED"}, 5s);
    CHECK(dry.code == 0);
    CHECK(has(dry.output, "RANK=2"));
    CHECK_FALSE(has(config.output + dry.output, "\nSTARTED"));
    const auto help = run_ddrun({"--help"}, 5s);
    CHECK(help.code == 0);
    CHECK(lines_of(help.output).size() <= 40);
    CHECK(has(run_ddrun({"--version"}, 5s).output, "ddrun "));
}

TEST_CASE("--dry-run leaves open what is known only when the nodes have met") {
    const auto dry = run_ddrun({"--nnodes=2:4", "--nproc-per-node=2", "--rdzv-endpoint=[fd00::7]",
                                "--stdin=1", "--insecure", "--dry-run", "sh"},
                               5s);
    CHECK(dry.code == 0);
    CHECK(has(dry.output, "2 to 4 nodes have met at [fd00::7]:29400"));
    CHECK(has(dry.output, "rank <N+1> (local rank 1): sh"));
    CHECK(has(dry.output, "RANK='<N>'"));
    CHECK(has(dry.output, "WORLD_SIZE='<workers of all nodes>'"));
    CHECK(has(dry.output, "MASTER_ADDR='<address of the first node>'"));
    CHECK_FALSE(has(dry.output, "reads ddrun's stdin"));
}

TEST_CASE("no program at all is a usage error that shows how") {
    const auto end = run_ddrun({"--nproc-per-node=2"}, 5s);
    CHECK(end.code == 2);
    CHECK(has(end.errors, "--help"));
}
