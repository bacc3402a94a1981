#include "fake_agent.hpp"
#include "launcher/keeper/proc.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ddrun::launcher::keeper;

namespace {

class Folder {
  public:
    Folder() {
        std::string pattern = "/tmp/keeper-test-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string file(const std::string& name, const std::string& content,
                                   int mode) const {
        const std::string path = path_ + "/" + name;
        std::ofstream(path) << content;
        ::chmod(path.c_str(), static_cast<mode_t>(mode));
        return path;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Value of a line "Key:\tvalue" in the worker's own /proc/self/status.
std::string status_line(const std::string& status, const std::string& key) {
    const std::size_t at = status.find(key + ":\t");
    if (at == std::string::npos) return "";
    const std::size_t from = at + key.size() + 2;
    return status.substr(from, status.find('\n', from) - from);
}

std::string status_of_worker(FakeAgent& agent) {
    agent.spawn(0, {"cat", "/proc/self/status"});
    return agent.output(0);
}

constexpr const char* no_signals = "0000000000000000";
constexpr const char* only_hangup = "0000000000000001";

}  // namespace

TEST_CASE("a worker starts with default signals, an empty mask, and no parent's leftovers") {
    // Whatever the agent blocked and ignored is not the worker's business.
    sigset_t blocked;
    sigset_t before;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::sigaddset(&blocked, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &blocked, &before);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    std::string status;
    {
        FakeAgent agent;
        status = status_of_worker(agent);
    }
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGHUP, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    CHECK(status_line(status, "SigIgn") == no_signals);
    CHECK(status_line(status, "SigBlk") == no_signals);
    CHECK(status_line(status, "SigPnd") == no_signals);
    CHECK(status_line(status, "ShdPnd") == no_signals);
}

TEST_CASE("LIFE-7: an inherited ignored SIGHUP stays ignored in workers") {
    WorkerDefaults defaults;
    defaults.ignore_hangup = true;
    FakeAgent agent(defaults);
    CHECK(status_line(status_of_worker(agent), "SigIgn") == only_hangup);
}

TEST_CASE("a worker has no descriptors but 0, 1 and 2") {
    const int leaked = ::dup(STDOUT_FILENO);  // without close-on-exec, on purpose
    FakeAgent agent;
    for (int rank = 0; rank < 3; ++rank) agent.spawn(rank, {"ls", "-l", "/proc/self/fd"});
    for (int rank = 0; rank < 3; ++rank) {
        std::istringstream lines(agent.output(rank));
        std::string open;
        for (std::string line; std::getline(lines, line);) {
            // ls itself holds the folder that it lists.
            const std::size_t arrow = line.find(" -> ");
            if (arrow == std::string::npos || line.find("/proc/", arrow) != std::string::npos)
                continue;
            open += line.substr(line.rfind(' ', arrow - 1) + 1,
                                arrow - line.rfind(' ', arrow - 1) - 1) +
                    " ";
        }
        CHECK(open == "0 1 2 ");
    }
    ::close(leaked);
}

TEST_CASE("the keeper holds nothing of the agent's but its link") {
    FakeAgent agent;
    agent.spawn_shell(0, "exit 0");
    agent.expect<Exited>();
    const auto open_files = [&] {
        std::vector<std::string> targets;
        for (const auto& entry : std::filesystem::directory_iterator(
                 "/proc/" + std::to_string(agent.keeper()) + "/fd")) {
            std::error_code closed_meanwhile;
            const std::string target =
                std::filesystem::read_symlink(entry.path(), closed_meanwhile);
            targets.push_back(
                target.substr(0, target.starts_with("socket") ? 6 : std::string::npos));
        }
        std::sort(targets.begin(), targets.end());
        return targets;
    };
    std::string seen;
    CHECK(eventually(
        [&] {
            seen.clear();
            for (const std::string& target : open_files()) seen += target + " ";
            return seen ==
                   "/dev/null /dev/null /dev/null anon_inode:[eventpoll] anon_inode:[signalfd] "
                   "socket ";
        },
        1s));
    CAPTURE(seen);
    CHECK(read_process(agent.keeper())->name == "keeper");
    CHECK(::getpgid(agent.keeper()) == agent.keeper());
    CHECK(::getsid(agent.keeper()) == ::getsid(0));
}

TEST_CASE("RES-6: the soft limit of descriptors is restored in workers") {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit raised = before;
    raised.rlim_cur = raised.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &raised);
    WorkerDefaults defaults;
    defaults.nofile_soft = 256;
    {
        FakeAgent agent(defaults);
        agent.spawn_shell(0, "ulimit -Sn; ulimit -Hn");
        CHECK(agent.output(0) == "256\n" + std::to_string(raised.rlim_max) + "\n");
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("a worker leads its own session and is chosen by the OOM killer before ddrun") {
    FakeAgent agent;
    agent.spawn_shell(0, "cat /proc/self/oom_score_adj; read -r x < /dev/zero");
    const pid_t worker = agent.started(0);
    CHECK(::getsid(worker) == worker);
    CHECK(::getpgid(worker) == worker);
    agent.await_output(0, "\n");
    const int own = std::stoi(read_proc_file(::getpid(), "oom_score_adj", 16));
    CHECK(std::stoi(read_proc_file(worker, "oom_score_adj", 16)) == std::min(1000, own + 100));
    CHECK(std::stoi(read_proc_file(agent.keeper(), "oom_score_adj", 16)) == own);
}

TEST_CASE("ARG-2: arguments and environment arrive byte for byte") {
    const std::vector<std::string> odd = {"",
                                          "a b",
                                          "I'm",
                                          "72\" tall",
                                          "x\ny",
                                          "*",
                                          "$HOME",
                                          "-4C",
                                          "--p=a b",
                                          "\xff\xfe",
                                          "--help",
                                          "--",
                                          std::string(100000, 'y')};
    std::vector<std::string> argv = {"sh", "-c", "cat /proc/$$/cmdline", "name"};
    argv.insert(argv.end(), odd.begin(), odd.end());
    std::string expected;
    for (const std::string& argument : argv) expected += argument + '\0';
    FakeAgent agent;
    agent.spawn(0, argv);
    CHECK(agent.output(0) == expected);

    SpawnChoices choices;
    choices.clear_environment = true;
    choices.extra = {{"A", ""}, {"B", "x=y\nz"}, {"PATH", "/usr/bin:/bin"}};
    agent.spawn(1, {"env", "-0"}, choices);
    const std::string environment = agent.output(1);
    CHECK(environment.find(std::string("A=\0", 3)) != std::string::npos);
    CHECK(environment.find(std::string("B=x=y\nz\0", 8)) != std::string::npos);
    CHECK(std::count(environment.begin(), environment.end(), '\0') == 5);
}

TEST_CASE("an argument list of 2 MB passes the link and starts") {
    FakeAgent agent;
    std::vector<std::string> argv = {"sh", "-c", "echo $#", "name"};
    for (int i = 0; i < 20; ++i) argv.emplace_back(std::size_t{90000}, 'x');
    for (int rank = 0; rank < 4; ++rank) agent.spawn(rank, argv);
    // Nobody but expect() moves the rest of what the socket did not take at once.
    for (int rank = 0; rank < 4; ++rank) CHECK(agent.expect<Exited>().wait_status == 0);
    for (int rank = 0; rank < 4; ++rank) CHECK(agent.output(rank) == "20\n");
}

TEST_CASE("EXIT-8: a refused exec is told with stage, file and errno, and leaves no child") {
    const Folder folder;
    struct Case {
        std::string program;
        int error_number;
        std::string path;
    };
    const std::string plain = folder.file("plain", "echo hi\n", 0644);
    const std::string script = folder.file("crlf", "#!/bin/nosuchshell\r\n", 0755);
    const std::string foreign = folder.file("foreign", "no format at all\n", 0755);
    const std::vector<Case> cases = {
        {"no-such-program-anywhere", ENOENT, ""},
        {folder.path() + "/missing", ENOENT, folder.path() + "/missing"},
        {plain, EACCES, plain},
        {folder.path(), EACCES, folder.path()},
        {script, ENOENT, script},
        {foreign, ENOEXEC, foreign},
        {"", ENOENT, ""},
    };
    FakeAgent agent;
    for (const Case& one : cases) {
        agent.spawn(0, {one.program});
        const auto refused = agent.expect<NotSpawned>(1s);
        INFO(one.program);
        CHECK(refused.stage == "exec");
        CHECK(refused.error_number == one.error_number);
        CHECK(refused.path == one.path);
    }
    CHECK_FALSE(agent.comes<Spawned>(0ms));
    CHECK_FALSE(agent.comes<Exited>(0ms));
    agent.send(KillRound{1});
    agent.expect<RoundClear>(1s);
}

TEST_CASE("the program is looked up in the worker's own PATH, as execvp does") {
    const Folder first;
    const Folder second;
    const Folder third;
    (void)first.file("tool", "not executable", 0644);
    (void)second.file("tool", "#!/bin/sh\necho second \"$0\"\n", 0755);
    (void)third.file("tool", "#!/bin/sh\necho third\n", 0755);
    SpawnChoices choices;
    choices.extra["PATH"] =
        "/no/such/place:" + first.path() + ":" + second.path() + ":" + third.path();
    FakeAgent agent;
    agent.spawn(0, {"tool"}, choices);
    CHECK(agent.output(0) == "second " + second.path() + "/tool\n");

    choices.extra["PATH"] = first.path();
    agent.spawn(1, {"tool"}, choices);
    const auto refused = agent.expect<NotSpawned>();
    CHECK(refused.error_number == EACCES);
    CHECK(refused.path == first.path() + "/tool");
}

TEST_CASE("a worker inherits the working directory and umask of ddrun") {
    const auto before = std::filesystem::current_path();
    const Folder folder;
    std::filesystem::current_path(folder.path());
    const mode_t mask = ::umask(027);
    {
        FakeAgent agent;
        agent.spawn_shell(0, "pwd; umask");
        CHECK(agent.output(0) == folder.path() + "\n0027\n");
    }
    ::umask(mask);
    std::filesystem::current_path(before);
}

TEST_CASE("affinity and memory policy are applied before the exec") {
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof(allowed), &allowed);
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &allowed)) --last;
    SpawnChoices choices;
    choices.cpus = {last};
    choices.memory_node = 0;
    FakeAgent agent;
    agent.spawn_shell(0, "grep Cpus_allowed_list /proc/self/status; head -1 /proc/self/numa_maps",
                      choices);
    const auto spawned = agent.expect<Spawned>();
    const std::string output = agent.output(0);
    CHECK(output.find("Cpus_allowed_list:\t" + std::to_string(last) + "\n") == 0);
    if (std::filesystem::exists("/proc/self/numa_maps")) {
        CHECK((output.find("prefer") != std::string::npos || !spawned.refused_binding.empty()));
    }
}

TEST_CASE("a refused binding is a remark, or with --strict-binding the end") {
    SpawnChoices choices;
    choices.cpus = {4000};
    FakeAgent agent;
    agent.spawn_shell(0, "echo runs", choices);
    CHECK(agent.expect<Spawned>().refused_binding == "affinity: Invalid argument");
    CHECK(agent.output(0) == "runs\n");
    choices.strict_binding = true;
    agent.spawn_shell(1, "echo runs", choices);
    const auto refused = agent.expect<NotSpawned>();
    CHECK(refused.stage == "affinity");
    CHECK(refused.error_number == EINVAL);
    CHECK(agent.output(1).empty());
}

TEST_CASE("stdin is what was given") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(::write(ends[1], "hello\n", 6) == 6);
    ::close(ends[1]);
    SpawnChoices choices;
    choices.input = ends[0];
    choices.owns_stdin = true;
    FakeAgent agent;
    agent.spawn(0, {"cat"}, choices);
    agent.spawn(1, {"cat"});
    CHECK(agent.output(0) == "hello\n");
    CHECK(agent.output(1).empty());
    ::close(ends[0]);
}
