// So many agents at one stand-alone server, over real sockets of the loopback: time to form, memory
// and time of the server, and two cuts of the network.
//   bench_rendezvous [agents, 10000] [plain|tls|both] [cut: that only]
#include "rendezvous/platform/clock.hpp"
#include "rendezvous/transport/secret.hpp"
#include "tests/bench/measure.hpp"
#include "tests/bench/rendezvous_agents.hpp"

#include <boost/asio/ip/address.hpp>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace ddrun;
using namespace ddrun::bench;
using namespace std::chrono_literals;

namespace {

constexpr const char* secret = "a secret of this bench only";

// A started ddrun-rendezvous; it dies with this object.
class ServerProcess {
  public:
    explicit ServerProcess(bool tls) {
        int errors[2];
        if (::pipe2(errors, O_CLOEXEC) != 0) std::abort();
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
        ::setenv("DDRUN_SECRET", secret, 1);
        std::vector<std::string> argv = {DDRUN_RENDEZVOUS, "--listen=127.0.0.1:0"};
        if (!tls) argv.push_back("--insecure");
        pid_ = bench::start(argv, &actions);
        posix_spawn_file_actions_destroy(&actions);
        ::close(errors[1]);
        said_ = errors[0];
    }
    ~ServerProcess() {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
        ::close(said_);
    }
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;

    int port() const {  // as it says
        std::string text;
        char byte = 0;
        while (::read(said_, &byte, 1) == 1 && byte != '\n') text += byte;
        const std::string before = "listening on 127.0.0.1:";
        const std::size_t at = text.find(before);
        if (at == std::string::npos) std::fprintf(stderr, "%s\n", text.c_str());
        return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + before.size());
    }
    double resident_kib() const {
        std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
        for (std::string line; std::getline(status, line);) {
            if (line.rfind("VmRSS:", 0) == 0) return std::atof(line.c_str() + 6);
        }
        return 0;
    }
    double cpu_seconds() const {
        std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
        std::stringstream text;
        text << stat.rdbuf();
        std::istringstream fields(text.str().substr(text.str().rfind(')') + 2));
        std::string skip;
        for (int i = 0; i < 11; ++i) fields >> skip;
        double user = 0, system = 0;
        fields >> user >> system;
        return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }

  private:
    pid_t pid_ = -1;
    int said_ = -1;
};

bool run_until(Crowd& crowd, const std::function<bool()>& done, Duration limit) {
    const TimePoint end = detail::now() + limit;
    while (!done() && detail::now() < end) crowd.io.run_for(20ms);
    return done();
}
void run_for(Crowd& crowd, Duration time) {
    crowd.io.run_for(time);
}

double seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

class Run {
  public:
    Run(int agents, bool tls) : count_(agents), server_(tls) {
        crowd_.server = {boost::asio::ip::make_address("127.0.0.1"),
                         static_cast<unsigned short>(server_.port())};
        crowd_.security.mode =
            tls ? rendezvous::Security::Mode::psk : rendezvous::Security::Mode::plain;
        if (tls) crowd_.security.key = rendezvous::key_of(secret);
        std::printf("%d agents, %s\n", agents, tls ? "TLS" : "plain");
    }

    void measure(bool cut_only) {
        const double empty = server_.resident_kib();
        if (!form()) return;
        run_for(crowd_, 2s);
        std::printf("  server memory                 %8.1f KiB an agent (empty: %.0f KiB)\n",
                    (server_.resident_kib() - empty) / count_, empty);
        if (!cut_only) rest();
        if (!cut_only) cut_silence();
        cut_connections();
        std::printf("  server memory at the end      %8.1f KiB an agent\n",
                    (server_.resident_kib() - empty) / count_);
    }

  private:
    bool form() {
        const double before = server_.cpu_seconds();
        for (int i = 0; i < count_; ++i) {
            agents_.push_back(std::make_unique<CrowdAgent>(crowd_, i, count_));
            agents_.back()->start();
            while (crowd_.opening >= most_opening) crowd_.io.run_for(1ms);
        }
        const bool formed = run_until(
            crowd_, [&] { return crowd_.granted >= count_; }, 120s);
        std::printf(
            "  first connection to last grant %7.2f s (server: %.2f s of CPU; "
            "connections made again: %d)%s\n",
            seconds(crowd_.last_grant - crowd_.first_connection), server_.cpu_seconds() - before,
            std::exchange(crowd_.lost, 0), formed ? "" : "  NOT FORMED");
        if (!formed) {
            std::printf("  granted %d, welcomed %d, lost %d: %s\n", crowd_.granted, crowd_.welcomed,
                        crowd_.lost, crowd_.trouble.c_str());
        }
        return formed;
    }
    void rest() {
        const double before = server_.cpu_seconds();
        run_for(crowd_, 10s);
        std::printf("  server at rest                %8.1f %% of a core, heartbeats every 1 s\n",
                    (server_.cpu_seconds() - before) * 10);
    }
    void cut_silence() {
        std::this_thread::sleep_for(3s);
        run_for(crowd_, 8s);
        report("3 s of silence of all");
    }
    void cut_connections() {
        const int before = crowd_.welcomed;
        const TimePoint cut = detail::now();
        const double cpu = server_.cpu_seconds();
        for (const auto& agent : agents_) agent->drop_connection();
        const bool back = run_until(
            crowd_, [&] { return crowd_.welcomed - before >= count_; }, 60s);
        const double took = seconds(detail::now() - cut);
        run_for(crowd_, 8s);
        std::printf("  all connections cut: %s after %.2f s (server: %.2f s of CPU)\n",
                    back ? "all are back" : "NOT all are back", took, server_.cpu_seconds() - cpu);
        report("all connections cut");
    }
    void report(const char* what) {
        std::printf("  %-30s expelled or stopped: %d, connections lost: %d %s\n", what,
                    crowd_.stopped, std::exchange(crowd_.lost, 0), crowd_.trouble.c_str());
    }

    int count_;
    ServerProcess server_;
    Crowd crowd_;
    std::vector<std::unique_ptr<CrowdAgent>> agents_;
};

}  // namespace

int main(int argc, char** argv) {
    const int agents = argc > 1 ? std::atoi(argv[1]) : 10'000;
    const std::string mode = argc > 2 ? argv[2] : "both";
    const bool cut_only = argc > 3;
    ::signal(SIGPIPE, SIG_IGN);
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    double load = 0;
    std::ifstream("/proc/loadavg") >> load;
    std::printf("load average %.2f; the server and all agents share this machine\n", load);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    if (mode != "tls") Run(agents, false).measure(cut_only);
    if (mode != "plain") Run(agents, true).measure(cut_only);
    return 0;
}
