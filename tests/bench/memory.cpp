// Memory of ddrun itself (agent and keeper) while N workers run.
// usage: bench_memory [workers=256]
#include "tests/bench/measure.hpp"

#include <signal.h>

#include <fstream>
#include <string>

using namespace ddrun::bench;

namespace {

std::string line_of(pid_t pid, const std::string& file, const std::string& name) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
    for (std::string line; std::getline(in, line);)
        if (line.rfind(name, 0) == 0) return line.substr(name.size());
    return {};
}

std::vector<pid_t> children_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; in >> child;) children.push_back(child);
    return children;
}

double peak_mib(pid_t pid) {
    return std::atof(line_of(pid, "status", "VmHWM:").c_str()) / 1024;
}
double proportional_mib(pid_t pid) {
    return std::atof(line_of(pid, "smaps_rollup", "Pss:").c_str()) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
    const int workers = argc > 1 ? std::atoi(argv[1]) : 256;
    const pid_t agent = start(
        {DDRUN_BINARY, "--quiet", "--nproc-per-node=" + std::to_string(workers), "sleep", "60"});
    std::vector<pid_t> keeper;
    for (int tries = 0; tries < 2000; ++tries, usleep(10'000)) {
        keeper = children_of(agent);
        if (keeper.size() == 1 && static_cast<int>(children_of(keeper[0]).size()) == workers) break;
    }
    if (keeper.empty()) return 1;
    std::printf(
        "%d workers: peak resident agent %.1f MiB, keeper %.1f MiB; shared pages counted once: "
        "%.1f MiB together\n",
        workers, peak_mib(agent), peak_mib(keeper[0]),
        proportional_mib(agent) + proportional_mib(keeper[0]));
    kill(agent, SIGTERM);
    waitpid(agent, nullptr, 0);
    return 0;
}
