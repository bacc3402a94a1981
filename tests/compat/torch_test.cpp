// `ddrun script.py` where people say `torchrun script.py`.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <cstdlib>
#include <set>

using namespace ddrun::test;

namespace {

// Pythons with PyTorch that are here.
std::vector<std::string> pythons() {
    std::vector<std::string> found;
    const char* chosen = std::getenv("DDRUN_TEST_PYTHON");
    for (const std::string& python :
         {std::string("/usr/bin/python3"), std::string(chosen == nullptr ? "" : chosen)}) {
        if (python.empty()) continue;
        const auto end = run({{python, "-c", "import torch; print(torch.__version__)"},
                              {},
                              {},
                              "",
                              false,
                              false,
                              {}},
                             60s);
        if (end.code == 0) found.push_back(python);
    }
    if (found.empty()) WARN("skipped: no PyTorch here (Debian: python3-torch)");
    return found;
}

Finished run_script(const std::string& python, std::vector<std::string> flags,
                    const std::string& script, std::vector<std::string> arguments = {}) {
    flags.push_back(std::string(DDRUN_SCRIPTS) + "/" + script);
    flags.insert(flags.end(), arguments.begin(), arguments.end());
    Invocation invocation = ddrun_with(std::move(flags));
    invocation.env["PYTHON_EXEC"] = python;
    invocation.env["GLOO_SOCKET_IFNAME"] = "lo";
    return run(std::move(invocation), 90s);
}

const std::vector<std::string> tour_arguments = {"--nnodes=7", "--role=mine"};

std::set<std::string> digests_in(const std::string& output) {
    std::set<std::string> digests;
    for (const std::string& line : lines_of(output))
        if (const auto at = line.find("digest "); at != std::string::npos)
            digests.insert(line.substr(at));
    return digests;
}

}  // namespace

TEST_CASE("groups, object collectives, barriers, DDP with a sampler") {
    for (const std::string& python : pythons()) {
        const auto end = run_script(python, {"--nproc-per-node=4"}, "tour.py", tour_arguments);
        INFO(python << "\n" << end.output << end.errors);
        CHECK(end.code == 0);
        CHECK(count_of(end.output, "digest ") == 4);
        CHECK(digests_in(end.output).size() == 1);
        CHECK(end.left_nothing);
    }
}

TEST_CASE("an attempt finds no key of the one before, and the store outlives rank 0") {
    for (const std::string& python : pythons()) {
        const auto end =
            run_script(python, {"--nproc-per-node=3", "--max-restarts=1", "--restart-backoff=0"},
                       "survive.py");
        INFO(python << "\n" << end.output << end.errors);
        CHECK(end.code == 0);
        CHECK(count_of(end.output, "attempt 0 sum 6.0") >= 1);
        CHECK(count_of(end.output, "attempt 1 sum 6.0") == 3);
        CHECK(count_of(end.output, "late 1") == 2);
        CHECK(end.left_nothing);
    }
}

TEST_CASE("--agent-store=off: rank 0 serves the store itself at the port kept for it") {
    for (const std::string& python : pythons()) {
        const auto end = run_script(python, {"--nproc-per-node=2", "--agent-store=off"}, "tour.py",
                                    tour_arguments);
        INFO(python << "\n" << end.output << end.errors);
        CHECK(end.code == 0);
    }
}

TEST_CASE("two jobs on one machine do not meet") {
    for (const std::string& python : pythons()) {
        std::vector<std::string> words = {"--nproc-per-node=2",
                                          std::string(DDRUN_SCRIPTS) + "/tour.py"};
        words.insert(words.end(), tour_arguments.begin(), tour_arguments.end());
        Invocation invocation = ddrun_with(words);
        invocation.env["PYTHON_EXEC"] = python;
        invocation.env["GLOO_SOCKET_IFNAME"] = "lo";
        Program one(invocation);
        Program other(invocation);
        CHECK(one.wait(90s) == 0);
        CHECK(other.wait(90s) == 0);
    }
}

TEST_CASE("the same training under torchrun gives the same bits") {
    for (const std::string& python : pythons()) {
        const auto ours = run_script(python, {"--nproc-per-node=4"}, "tour.py", tour_arguments);
        Invocation invocation;
        invocation.argv = {python,
                           "-m",
                           "torch.distributed.run",
                           "--standalone",
                           "--nproc_per_node=4",
                           std::string(DDRUN_SCRIPTS) + "/tour.py"};
        invocation.argv.insert(invocation.argv.end(), tour_arguments.begin(), tour_arguments.end());
        invocation.env = {{"GLOO_SOCKET_IFNAME", "lo"}, {"OMP_NUM_THREADS", "1"}};
        const auto theirs = run(std::move(invocation), 90s);
        if (theirs.code != 0) {
            WARN("skipped: torchrun itself does not run here: " << theirs.errors.substr(0, 300));
            continue;
        }
        INFO(ours.output << theirs.output);
        CHECK(digests_in(ours.output) == digests_in(theirs.output));
        CHECK(digests_in(ours.output).size() == 1);
    }
}
