// Workers print 100-byte lines as fast as they can, to files on tmpfs and to a prefixed console
// that another process reads; beside `cat` and `tee`, which move the same bytes without looking at
// them. usage: bench_relay [megabytes=256] [workers=8] [turns=5]
#include "launcher/runtime/output/output_relay.hpp"
#include "tests/bench/measure.hpp"

#include <fcntl.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

using namespace ddrun::bench;
using namespace ddrun::launcher;

namespace {

struct Load {
    int megabytes = 256;
    int workers = 8;
    std::string folder;  // on tmpfs
};

void empty_folder(const Load& load) {
    std::filesystem::remove_all(load.folder);
    std::filesystem::create_directories(load.folder);
}

std::string lines_command(const Load& load) {
    return std::string(DDRUN_RELAY_LINES) + " " + std::to_string(load.megabytes);
}

double shell(const Load& load, const std::string& script) {
    empty_folder(load);
    const double took = wall_time({"/bin/bash", "-c", script});
    empty_folder(load);
    return took;
}

std::string all_workers(const Load& load, const std::string& each) {
    return "for i in $(seq " + std::to_string(load.workers) + "); do " + lines_command(load) +
           each + " & done; wait";
}

// One process brings what all workers write to tmpfs.
double one_cat_to_a_file(const Load& load) {
    return shell(load, "{ " + all_workers(load, "") + "; } | cat > " + load.folder + "/all");
}

// As many processes as workers: no single thread can keep up where there are cores.
double a_cat_each(const Load& load) {
    return shell(load, all_workers(load, " | cat > " + load.folder + "/$i"));
}

// The same deliveries as the relay's, without prefixes and with mixed lines.
double a_tee_each_and_a_reader(const Load& load) {
    return shell(
        load, "{ " + all_workers(load, " | tee " + load.folder + "/$i") + "; } | cat > /dev/null");
}

pid_t start_with(const std::vector<std::string>& argv, int from, int to) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (from >= 0) posix_spawn_file_actions_adddup2(&actions, from, 0);
    if (to >= 0) posix_spawn_file_actions_adddup2(&actions, to, 1);
    if (to < 0) posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    const pid_t pid = start(argv, &actions);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

// The relay alone, in this process; the console is a pipe to `cat > /dev/null`.
double relay(const Load& load) {
    empty_folder(load);
    const auto begin = Clock::now();
    int console[2];
    if (pipe2(console, O_CLOEXEC) != 0) return -1;
    const pid_t reader = start_with({"cat"}, console[0], -1);
    close(console[0]);
    RelayOptions options;
    options.console_out = options.console_err = console[1];
    OutputRelay output(options, {});
    std::vector<pid_t> workers;
    for (int i = 0; i < load.workers; ++i) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return -1;
        WorkerStreams streams;
        streams.rank = streams.local_rank = i;
        streams.out.read_end = ends[0];
        streams.out.file = load.folder + "/" + std::to_string(i);
        streams.out.prefix = std::string("[").append(std::to_string(i)).append("] ");
        output.add_worker(streams);
        workers.push_back(
            start_with({DDRUN_RELAY_LINES, std::to_string(load.megabytes)}, -1, ends[1]));
        close(ends[1]);
    }
    for (std::size_t i = 0; i < workers.size(); ++i) {
        waitpid(workers[i], nullptr, 0);
        output.worker_ended(0, static_cast<int>(i));
    }
    output.finish();
    close(console[1]);
    waitpid(reader, nullptr, 0);
    const double took = seconds_since(begin);
    for (const auto& loss : output.losses()) std::printf("LOST %s\n", loss.c_str());
    empty_folder(load);
    return took;
}

double whole_launcher(const Load& load) {
    return shell(load, std::string(DDRUN_BINARY) + " --nproc-per-node=" +
                           std::to_string(load.workers) + " --log-dir=" + load.folder +
                           " --tee=3 " + lines_command(load) + " | cat > /dev/null");
}

}  // namespace

int main(int argc, char** argv) {
    Load load;
    if (argc > 1) load.megabytes = std::atoi(argv[1]);
    if (argc > 2) load.workers = std::atoi(argv[2]);
    const int turns = argc > 3 ? std::atoi(argv[3]) : 5;
    load.folder = "/dev/shm/ddrun-bench-relay." + std::to_string(getpid());
    std::vector<Contestant> contestants = {
        {"one cat, everything to one file", [&] { return one_cat_to_a_file(load); }},
        {"a cat for each worker, to its file", [&] { return a_cat_each(load); }},
        {"a tee for each, and a reader", [&] { return a_tee_each_and_a_reader(load); }},
        {"relay in this process", [&] { return relay(load); }},
    };
    if (std::strlen(DDRUN_BINARY) > 0 && access(DDRUN_BINARY, X_OK) == 0)
        contestants.push_back({"ddrun --tee=3", [&] { return whole_launcher(load); }});
    run_in_turn(contestants, turns);
    print_ratios(contestants);
    const double bytes = 1e6 * load.megabytes * load.workers;
    for (const auto& each : contestants)
        std::printf("%-44s %7.2f GB/s\n", each.name.c_str(), bytes / median(each.seconds) / 1e9);
    std::filesystem::remove_all(load.folder);
    return 0;
}
