// The store of a round: operations a second, latency, the agent's CPU time for each, and how long
// many clients take to meet; beside PyTorch's TCPStore where /usr/bin/python3 has it.
// usage: bench_store [seconds=1] [largest meeting=4000]
//
// The real path: a real ddrun with a real agent. Its worker of rank 0 hosts the clients: raw
// connections that say hello as rank 0, 1, 2 ... and are served by one thread, for both stores, and
// stores of the SDK, a thread each, with as many requests under way. The workers of the other ranks
// only stand by. The last meetings are of real SDK workers, a process each.
#include "tests/bench/measure.hpp"
#include "tests/bench/store_clients.hpp"
#include "tests/bench/store_gather.hpp"
#include "tests/bench/store_sdk.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

using namespace ddrun::bench;

namespace {

constexpr int most_clients = 256;
constexpr int pipelined = 64;

int environment_number(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? -1 : std::atoi(text);
}

int parent_of(int pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    int parent = -1;
    std::sscanf(text.c_str() + text.rfind(')') + 1, " %*c %d", &parent);
    return parent;
}

// What the worker processes need to know, by argument.
struct Stage {
    std::string directory;
    double seconds = 1;
    int torch_port = 0;  // 0: no such peer
    int torch_pid = 0;
};

// Ranks that lend their number to the clients of rank 0.
int stand_by(const Stage& stage) {
    const int ready = open((stage.directory + "/ready").c_str(), O_WRONLY | O_CLOEXEC);
    if (write(ready, "r", 1) != 1) return 1;
    close(open((stage.directory + "/go").c_str(), O_RDONLY | O_CLOEXEC));  // until rank 0 is done
    return 0;
}

class Host {
  public:
    explicit Host(const Stage& stage)
        : stage_(stage),
          address_(std::getenv("DDRUN_AGENT_SOCKET")),
          round_(environment_number("DDRUN_ROUND")),
          world_(environment_number("WORLD_SIZE")),
          agent_(parent_of(getppid())),
          table_(std::fopen((stage.directory + "/table").c_str(), "w")) {
        await_the_others();
    }
    ~Host() {
        std::fclose(table_);
        go_ = open((stage_.directory + "/go").c_str(), O_RDWR | O_CLOEXEC);
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    void throughput() {
        std::fprintf(table_, "%-8s %-5s %-11s %-20s %12s %9s %9s %11s %7s\n", "clients", "", "", "",
                     "ops/s", "p50 us", "p99 us", "server us", "ratio");
        for (const int clients : {1, 32, most_clients})
            for (const Operation operation : {Operation::add, Operation::get})
                for (const int depth : {1, pipelined}) compare(clients, operation, depth);
    }
    void meetings() {
        const auto begin = Clock::now();
        const auto mine = connect_agent(address_, round_, world_);
        const double connecting = seconds_since(begin);
        const Meeting ours = meet_at_agent(mine, 9);
        close_all(mine);
        meeting_row("ddrun, raw", connecting, ours, ours.barrier_seconds);
        if (stage_.torch_port == 0) return;
        const auto begin_torch = Clock::now();
        const auto theirs = connect_tcp(stage_.torch_port, world_);
        const double connecting_torch = seconds_since(begin_torch);
        meeting_row("PyTorch 1.13, raw", connecting_torch, meet_at_torch(theirs, 5),
                    ours.barrier_seconds);
        close_all(theirs);
    }

  private:
    void await_the_others() {
        if (world_ == 1) return;
        const int ready = open((stage_.directory + "/ready").c_str(), O_RDONLY | O_CLOEXEC);
        char bytes[4096];
        for (ssize_t missing = world_ - 1; missing > 0;) {
            const ssize_t got = read(ready, bytes, sizeof bytes);
            if (got < 0) throw std::runtime_error("the other ranks do not start");
            missing -= got;
        }
        close(ready);
    }
    void compare(int clients, Operation operation, int depth) {
        const Load load{operation, depth, stage_.seconds};
        const auto mine = connect_agent(address_, round_, clients);
        const Outcome raw = drive(mine, *ddrun_wire(), load, agent_);
        close_all(mine);
        Outcome torch;
        if (stage_.torch_port != 0) {
            const auto theirs = connect_tcp(stage_.torch_port, clients);
            torch = drive(theirs, *torch_wire(), load, stage_.torch_pid);
            close_all(theirs);
        }
        const double base = torch.operations_per_second;
        row(clients, load, "ddrun, raw", raw, base);
        if (base > 0) row(clients, load, "PyTorch 1.13, raw", torch, base);
        row(clients, load, "ddrun SDK", drive_sdk(address_, round_, clients, load, agent_), base);
    }
    void row(int clients, const Load& load, const char* who, const Outcome& outcome, double base) {
        std::fprintf(table_, "%-8d %-5s %-11s %-20s %12.0f %9.1f %9.1f %11.2f", clients,
                     load.operation == Operation::add ? "add" : "get",
                     load.depth == 1 ? "one by one" : "pipelined", who,
                     outcome.operations_per_second, outcome.p50_us, outcome.p99_us,
                     outcome.server_us_per_operation);
        if (base > 0) std::fprintf(table_, " %7.2f", outcome.operations_per_second / base);
        std::fprintf(table_, "\n");
        std::fflush(table_);
    }
    void meeting_row(const char* who, double connecting, const Meeting& meeting, double base) {
        std::fprintf(table_, "%-8d %-20s connect %8.1f ms  barrier %8.1f ms (%.2f)", world_, who,
                     connecting * 1e3, meeting.barrier_seconds * 1e3,
                     meeting.barrier_seconds / base);
        if (meeting.all_gather_seconds >= 0)
            std::fprintf(table_, "  all_gather %8.1f ms", meeting.all_gather_seconds * 1e3);
        std::fprintf(table_, "\n");
    }

    const Stage& stage_;
    std::string address_;
    int round_;
    int world_;
    int agent_;
    std::FILE* table_;
    int go_ = -1;  // open until this process ends
};

int be_sdk_worker(const Stage& stage) {
    const Meeting meeting = meet_as_worker(9);
    if (environment_number("RANK") != 0) return 0;
    std::ofstream(stage.directory + "/table")
        << environment_number("WORLD_SIZE") << " SDK worker processes: barrier "
        << meeting.barrier_seconds * 1e3 << " ms, all_gather " << meeting.all_gather_seconds * 1e3
        << " ms\n";
    return 0;
}

int be_worker(const std::string& role, const Stage& stage) {
    try {
        if (role == "--sdk") return be_sdk_worker(stage);
        if (environment_number("RANK") != 0) return stand_by(stage);
        Host host(stage);
        role == "--throughput" ? host.throughput() : host.meetings();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_store: %s\n", error.what());
        return 1;
    }
}

// A TCPStore in a Python process of its own; says its port.
struct TorchServer {
    TorchServer() {
        if (access("/usr/lib/python3/dist-packages/torch/__init__.py", R_OK) != 0) return;
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        pid = start({"/usr/bin/python3", "-c",
                     "import torch.distributed as d, signal\n"
                     "s = d.TCPStore('127.0.0.1', 0, None, True)\n"
                     "print(s.port, flush=True)\n"
                     "signal.pause()\n"},
                    &actions);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        std::string line;
        for (char byte = 0; pid > 0 && read(ends[0], &byte, 1) == 1 && byte != '\n';) line += byte;
        port = std::atoi(line.c_str());
        close(ends[0]);
    }
    ~TorchServer() {
        if (pid <= 0) return;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    TorchServer(const TorchServer&) = delete;
    TorchServer& operator=(const TorchServer&) = delete;
    pid_t pid = -1;
    int port = 0;
};

// One job whose rank 0 leaves a table.
void run_job(const char* role, int workers, const std::string& self, Stage stage) {
    for (const char* fifo : {"/ready", "/go"}) mkfifo((stage.directory + fifo).c_str(), 0600);
    const pid_t job = start({DDRUN_BINARY, "--nproc-per-node=" + std::to_string(workers), self,
                             role, stage.directory, std::to_string(stage.seconds),
                             std::to_string(stage.torch_port), std::to_string(stage.torch_pid)});
    int status = 0;
    waitpid(job, &status, 0);
    std::ifstream table(stage.directory + "/table");
    std::printf("%s", std::string((std::istreambuf_iterator<char>(table)), {}).c_str());
    std::fflush(stdout);
    for (const char* name : {"/ready", "/go", "/table"}) unlink((stage.directory + name).c_str());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 6)
        return be_worker(argv[1],
                         {argv[2], std::atof(argv[3]), std::atoi(argv[4]), std::atoi(argv[5])});
    char directory[] = "/tmp/ddrun-bench.XXXXXX";
    if (mkdtemp(directory) == nullptr) return 1;
    const TorchServer torch;
    if (torch.port == 0) std::printf("no PyTorch beside it: /usr/bin/python3 has no torch\n");
    const Stage stage{directory, argc > 1 ? std::atof(argv[1]) : 1, torch.port, torch.pid};
    const int largest = argc > 2 ? std::atoi(argv[2]) : 4000;
    double load = 0;
    std::printf("load average %.2f\n", getloadavg(&load, 1) == 1 ? load : -1);
    std::printf(
        "ratio: operations a second, PyTorch's = 1; server us: its CPU time an operation\n");
    run_job("--throughput", most_clients, argv[0], stage);
    std::printf("\nmeetings of all clients; in brackets the time, ddrun's raw barrier = 1\n");
    for (const int workers : {1000, 4000})
        if (workers <= largest)
            for (const char* role : {"--meet", "--sdk"}) run_job(role, workers, argv[0], stage);
    rmdir(directory);
    return 0;
}
