// Every command of README.md is run: here, or by the test that is named for it below. A command
// that is new to README fails this test until somebody says who runs it.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"
#include "tests/support/program.hpp"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace ddrun::test;

namespace {

bool starts_with_any(const std::string& line, const std::vector<std::string>& words) {
    for (const std::string& word : words)
        if (line.starts_with(word)) return true;
    return false;
}

std::string without_remark(const std::string& line) {
    const std::string command = line.substr(0, line.find("  #"));
    return command.substr(0, command.find_last_not_of(' ') + 1);
}

// Of the blocks without a language.
std::vector<std::string> commands() {
    std::vector<std::string> found;
    bool inside = false;
    bool plain = false;
    for (const std::string& line :
         lines_of(read_file(std::string(DDRUN_SOURCE_DIR) + "/README.md"))) {
        if (line.starts_with("```")) {
            inside = !inside;
            plain = line == "```";
        } else if (inside && plain &&
                   starts_with_any(line, {"ddrun ", "ddrun-", "./", "srun ", "cmake ", "cpack ",
                                          "python3 ", "pip ", "docker ", "command: "})) {
            found.push_back(without_remark(line));
        }
    }
    return found;
}

struct Elsewhere {
    std::string command;  // its beginning
    std::string file;     // that runs it
    std::string proof;    // what is to be found there
};
const std::vector<Elsewhere>& run_elsewhere() {
    static const std::vector<Elsewhere> list = {
        {"./packaging/quickstart", "packaging/quickstart", "--max-restarts=3"},
        {"./packaging/check", "packaging/check", "end_to_end"},
        {"cmake --install build/release --prefix", "tests/packages/check", "cmake --install"},
        {"cpack --config build/release/CPackConfig.cmake -G DEB", "tests/packages/check",
         "cpack --config"},
        {"python3 packaging/wheel/build", "tests/packages/check", "packaging/wheel/build"},
        {"docker build -f packaging/docker/Dockerfile --target runtime", "tests/packages/image",
         "packaging/docker/Dockerfile"},
        {"srun --ntasks-per-node=1 ddrun", "tests/scheduler/slurm_test.cpp", "--ntasks-per-node=1"},
    };
    return list;
}

// A desk: a home without a secret, a program, a script, a job file.
struct Desk {
    TemporaryDirectory files;
    Desk() {
        std::filesystem::copy_file("/bin/echo", files.file("train"));
        write_file(files.file("train.py"), "import os\nprint('rank', os.environ['RANK'])\n");
        write_file(files.file("job.yaml"), "program: ./train\nargs: [from, file]\n");
    }
    [[nodiscard]] Invocation invocation(const std::string& command) const {
        Invocation shell;
        shell.argv = {"sh", "-c", "cd '" + files.path() + "' && exec " + command};
        shell.env["HOME"] = files.path();
        shell.env["PATH"] =
            std::filesystem::path(ddrun_path()).parent_path().string() + ":/usr/bin:/bin";
        shell.env["CUDA_VISIBLE_DEVICES"] = "0,1";  // what "gpu" counts where no driver is
        shell.unset = {"DDRUN_SECRET", "SLURM_JOB_ID", "XDG_CONFIG_HOME"};
        return shell;
    }
};

// A pod's or Slurm's way to write it: the words of command: ["a", "b"].
std::string pod_command(const std::string& line) {
    std::string words;
    for (const char byte : line.substr(line.find('[') + 1)) {
        if (byte == '"' || byte == ']') continue;
        words += byte == ',' ? ' ' : byte;
    }
    return words;
}

void check_on_four_nodes(const Desk& desk, const std::string& command) {
    const Hosts hosts(4);
    std::vector<std::unique_ptr<Program>> nodes;
    for (int host = 0; host < 4; ++host) {
        std::string names = "127.0.0.1 localhost\n";
        names += Hosts::address(0) + " node0 train-0.train\n";
        names += Hosts::address(host) + " n" + std::to_string(host) + "\n";
        hosts.write_hosts_file(host, names);
        Invocation node = desk.invocation(command);
        if (!has(command, "--rdzv-endpoint")) {  // in a pod, from its index and stable name
            node.env["JOB_COMPLETION_INDEX"] = std::to_string(host);
            node.env["HOSTNAME"] = "train-" + std::to_string(host);
            hosts.write_hosts_file(host, names + Hosts::address(host) + " train-" +
                                             std::to_string(host) + ".train train-" +
                                             std::to_string(host) + "\n");
        }
        nodes.push_back(std::make_unique<Program>(hosts.on(host, std::move(node))));
    }
    for (auto& node : nodes) {
        CHECK(node->wait(20s).value_or(-1) == 0);
        INFO(node->errors());
        CHECK(node->errors().empty());
    }
}

void check_here(const Desk& desk, const std::string& command) {
    Invocation invocation = desk.invocation(command);
    invocation.stdin_open = has(command, "--stdin");
    Program job(std::move(invocation));
    if (has(command, "gdb")) {
        if (::access("/usr/bin/gdb", X_OK) != 0) {
            WARN("skipped: gdb is not here: " << command);
            return;
        }
        job.type("run\nquit\n");
    }
    CHECK(job.wait(20s).value_or(-1) == 0);
    INFO(job.errors());
    if (has(command, "./train --lr=0.1")) CHECK(count_of(job.output(), "--lr=0.1") == 4);
    if (has(command, "train.py")) CHECK(count_of(job.output(), "rank ") == 2);
    if (has(command, "job.yaml")) CHECK(has(job.output(), "from file"));
    if (has(command, "gdb")) CHECK(has(job.output(), "exited normally"));
}

}  // namespace

TEST_CASE("README: every command is run") {
    const Desk desk;
    const std::vector<std::string> all = commands();
    CHECK(all.size() >= 12);
    const std::string nowhere = Hosts::unavailable();
    int here = 0;
    for (const std::string& line : all) {
        const bool pod = line.starts_with("command: ");
        const std::string command = pod ? pod_command(line) : line;
        INFO(line);
        bool elsewhere = false;
        for (const Elsewhere& other : run_elsewhere()) {
            if (!command.starts_with(other.command)) continue;
            elsewhere = true;
            CHECK(has(read_file(std::string(DDRUN_SOURCE_DIR) + "/" + other.file), other.proof));
        }
        if (elsewhere) continue;
        REQUIRE(command.starts_with("ddrun "));
        ++here;
        if (!has(command, "--nnodes=4")) {
            check_here(desk, command);
        } else if (nowhere.empty()) {
            check_on_four_nodes(desk, command);
        } else {
            WARN("skipped: " << nowhere << ": " << command);
        }
    }
    CHECK(here >= 8);
}
