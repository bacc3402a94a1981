// Wall time of N x /bin/true under ddrun, beside a bare loop and other launchers.
// usage: bench_launch [workers=8] [turns=41]
#include "tests/bench/measure.hpp"

#include <string>
#include <vector>

using namespace ddrun::bench;

namespace {

double bare_loop(int workers) {
    const auto begin = Clock::now();
    for (int i = 0; i < workers; ++i) {
        const pid_t pid = fork();
        if (pid == 0) {
            execl("/bin/true", "true", static_cast<char*>(nullptr));
            _exit(127);
        }
    }
    while (wait(nullptr) > 0) {
    }
    return seconds_since(begin);
}

}  // namespace

int main(int argc, char** argv) {
    const int workers = argc > 1 ? std::atoi(argv[1]) : 8;
    const int turns = argc > 2 ? std::atoi(argv[2]) : 41;
    const std::string n = std::to_string(workers);
    std::vector<Contestant> contestants = {
        {"bare fork + exec + wait loop", [=] { return bare_loop(workers); }},
        {"ddrun --nproc-per-node=" + n,
         [=] {
             return wall_time({DDRUN_BINARY, "--nproc-per-node=" + n, "/bin/true"});
         }},
        {"MPICH mpiexec -launcher fork",
         [=] {
             return wall_time({"mpiexec.hydra", "-launcher", "fork", "-n", n, "/bin/true"});
         }},
        {"Open MPI mpirun",
         [=] {
             return wall_time({"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", n,
                               "/bin/true"});
         },
         4},
        {"torchrun (Debian's PyTorch, interval 0.1 s)",
         [=] {
             return wall_time({"/usr/bin/python3", DDRUN_SOURCE_DIR "/tests/bench/torchrun.py",
                               "--standalone", "--monitor_interval=0.1", "--nproc_per_node=" + n,
                               "--no_python", "/bin/true"});
         },
         20},
    };
    run_in_turn(contestants, turns);
    print_ratios(contestants);
    return 0;
}
