// SIGKILL of one of N workers until the first instruction of all the new ones, under ddrun and
// torchrun. usage: bench_restart [workers=8] [kills=20]
//
// Each worker writes "<attempt> <rank> <pid> <CLOCK_MONOTONIC ns>" to a pipe that this program
// reads; it is its own worker program (--worker), so the first instruction is really the first.
#include "tests/bench/measure.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace ddrun::bench;

namespace {

long long monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int worker(const char* fifo) {
    const long long now = monotonic_ns();
    char line[128];
    const int length = std::snprintf(line, sizeof line, "%s %s %d %lld\n",
                                     std::getenv("TORCHELASTIC_RESTART_COUNT"), std::getenv("RANK"),
                                     getpid(), now);
    const int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    if (write(fd, line, static_cast<std::size_t>(length)) != length) return 1;
    for (;;) pause();
}

struct Round {
    std::map<int, int> pids;  // rank -> pid
    long long last_start = 0;
};

// Lines of the pipe, each waited for at most 20 s: a contestant that does not start must not hang
// us.
class Lines {
  public:
    explicit Lines(int fd) : fd_(fd) {}

    bool next(std::string& line) {
        for (;;) {
            const auto end = buffer_.find('\n');
            if (end != std::string::npos) {
                line = buffer_.substr(0, end);
                buffer_.erase(0, end + 1);
                return true;
            }
            pollfd ready{fd_, POLLIN, 0};
            char bytes[4096];
            if (poll(&ready, 1, 20'000) <= 0) return false;
            const auto got = read(fd_, bytes, sizeof bytes);
            if (got <= 0) return false;
            buffer_.append(bytes, static_cast<std::size_t>(got));
        }
    }

  private:
    int fd_;
    std::string buffer_;
};

// Reads lines until all ranks of `attempt` have reported.
bool read_round(Lines& lines, int attempt, int workers, Round& round) {
    round = {};
    std::string line;
    while (static_cast<int>(round.pids.size()) < workers) {
        int seen = 0, rank = 0, pid = 0;
        long long at = 0;
        if (!lines.next(line)) return false;
        if (std::sscanf(line.c_str(), "%d %d %d %lld", &seen, &rank, &pid, &at) != 4 ||
            seen != attempt)
            continue;
        round.pids[rank] = pid;
        round.last_start = std::max(round.last_start, at);
    }
    return true;
}

std::vector<double> restarts(std::vector<std::string> command, const std::string& self, int workers,
                             int kills) {
    char directory[] = "/tmp/ddrun-bench.XXXXXX";
    if (mkdtemp(directory) == nullptr) return {};
    const std::string fifo = std::string(directory) + "/fifo";
    mkfifo(fifo.c_str(), 0600);
    const int keep = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    Lines lines(keep);
    for (const auto& word : {self, std::string("--worker"), fifo}) command.push_back(word);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    const pid_t launcher = start(command, &quiet);
    posix_spawn_file_actions_destroy(&quiet);
    std::vector<double> took;
    Round round;
    if (launcher > 0 && read_round(lines, 0, workers, round))
        for (int attempt = 1; attempt <= kills; ++attempt) {
            usleep(static_cast<useconds_t>(20000 + 7919 * attempt % 90000));  // no fixed phase
            const long long begin = monotonic_ns();
            kill(round.pids[attempt % workers], SIGKILL);
            if (!read_round(lines, attempt, workers, round)) break;
            took.push_back(static_cast<double>(round.last_start - begin) * 1e-9);
        }
    if (launcher > 0) {
        kill(launcher, SIGTERM);
        waitpid(launcher, nullptr, 0);
    }
    close(keep);
    unlink(fifo.c_str());
    rmdir(directory);
    return took;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--worker") == 0) return worker(argv[2]);
    const int workers = argc > 1 ? std::atoi(argv[1]) : 8;
    const int kills = argc > 2 ? std::atoi(argv[2]) : 20;
    const std::string n = std::to_string(workers);
    const std::string self = argv[0];
    std::vector<Contestant> contestants = {
        {"ddrun", nullptr}, {"torchrun (Debian's PyTorch, interval 0.1 s)", nullptr}};
    contestants[0].seconds = restarts(
        {DDRUN_BINARY, "--nproc-per-node=" + n, "--max-restarts=1000", "--restart-backoff=0"}, self,
        workers, kills);
    if (access("/usr/lib/python3/dist-packages/torch/__init__.py", R_OK) == 0)
        contestants[1].seconds =
            restarts({"/usr/bin/python3", DDRUN_SOURCE_DIR "/tests/bench/torchrun.py",
                      "--standalone", "--monitor_interval=0.1", "--max_restarts=1000",
                      "--nproc_per_node=" + n, "--no_python"},
                     self, workers, std::min(kills, 6));
    std::printf("SIGKILL of one of %d workers -> first instruction of the last new one\n", workers);
    print_ratios(contestants);
    return 0;
}
