#include "launcher/keeper/spawn.hpp"

#include "launcher/keeper/program.hpp"
#include "launcher/keeper/worker_launcher.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>

namespace ddrun::launcher::keeper {
namespace {

constexpr int preferred_policy = 1;  // MPOL_PREFERRED of <linux/mempolicy.h>

// --- in the child: each returns 0 or an errno ---------------------------------------------------
int die_with(pid_t keeper) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
    // The keeper may have died before the request took effect.
    if (::getppid() != keeper) ::_exit(127);
    return 0;
}

// Closes all else now and not at the exec: a child that hangs there (a file server that does not
// answer) must not hold the link, whose end tells the agent that the keeper died. Kernels without
// close_range close at the exec.
int place_streams(const std::vector<UniqueFd>& streams, int report) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
        if (::dup2(streams[i].get(), static_cast<int>(i)) < 0) return errno;
    }
    const auto kept = static_cast<unsigned>(report);
    if (kept > 3) ::syscall(SYS_close_range, 3u, kept - 1, 0u);
    ::syscall(SYS_close_range, kept + 1, UINT_MAX, 0u);
    return 0;
}

int lead_group(bool takes_terminal) {
    if (!takes_terminal) return ::setsid() < 0 ? errno : 0;
    // All signals are blocked here, SIGTTOU among them, so a background process may do this.
    if (::setpgid(0, 0) != 0 || ::tcsetpgrp(STDIN_FILENO, ::getpid()) != 0) return errno;
    return 0;
}

void raise_oom_score(int score) {
    const UniqueFd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    const std::string text = std::to_string(score);
    // Where it is refused, the kernel's own judgement stands.
    [[maybe_unused]] const ssize_t written = ::write(file.get(), text.data(), text.size());
}

int restore_limits(unsigned long long nofile_soft) {
    rlimit files{};
    if (nofile_soft == 0 || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    files.rlim_cur = std::min<rlim_t>(nofile_soft, files.rlim_max);
    return ::setrlimit(RLIMIT_NOFILE, &files) != 0 ? errno : 0;
}

int bind_to_cpus(const std::vector<int>& cpus) {
    if (cpus.empty()) return 0;
    const auto count = static_cast<std::size_t>(*std::max_element(cpus.begin(), cpus.end())) + 1;
    cpu_set_t* set = CPU_ALLOC(count);
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, set);
    for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
    return ::sched_setaffinity(0, bytes, set) != 0 ? errno : 0;
}

int prefer_memory_of(std::optional<int> node) {
    if (!node) return 0;
    constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
    const auto bit = static_cast<std::size_t>(*node);
    std::vector<unsigned long> mask(bit / word_bits + 1);
    mask[bit / word_bits] |= 1ul << (bit % word_bits);
    // The kernel reads one bit less than it is told.
    const auto bits = mask.size() * word_bits + 1;
    return ::syscall(SYS_set_mempolicy, preferred_policy, mask.data(), bits) != 0 ? errno : 0;
}

void unblock_signals() {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Prepares the child for its program; see WorkerLauncher.
struct WorkerSetup {
    const Spawn& order;
    const std::vector<UniqueFd>& streams;
    const SpawnSettings& settings;
    bool takes_terminal;

    template <typename Launcher>
    process::error_code on_exec_setup(Launcher& launcher, const process::filesystem::path&,
                                      const char* const*(&)) {
        const WorkerPlan& plan = order.plan;
        const bool strict = order.strict_binding;
        const int fd = launcher.report_fd;
        const bool ready =
            check(fd, SpawnStage::session, die_with(settings.keeper), true) &&
            check(fd, SpawnStage::descriptors, place_streams(streams, fd), true) &&
            check(fd, SpawnStage::session, lead_group(takes_terminal), true) &&
            check(fd, SpawnStage::limits, restore_limits(settings.nofile_soft), true) &&
            check(fd, SpawnStage::affinity, bind_to_cpus(plan.cpus), strict) &&
            check(fd, SpawnStage::memory_policy, prefer_memory_of(plan.memory_node), strict);
        if (!ready) return {ECANCELED, process::system_category()};
        raise_oom_score(settings.oom_score_adj);
        unblock_signals();
        return {};
    }

    template <typename Launcher>
    void on_exec_failed(Launcher& launcher, int error_number) {
        check(launcher.report_fd, SpawnStage::exec, error_number, true);
    }

    // Reports an error; false when the child has to end.
    static bool check(int fd, SpawnStage stage, int error_number, bool fatal) {
        if (error_number == 0) return true;
        const SpawnReport report{stage, error_number, fatal};
        [[maybe_unused]] const ssize_t written = ::write(fd, &report, sizeof(report));
        return !fatal;
    }
};

// --- in the keeper ------------------------------------------------------------------------------
std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
    std::vector<const char*> pointers;
    pointers.reserve(strings.size() + 1);
    for (const std::string& string : strings) pointers.push_back(string.c_str());
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> assignments(const Variables& variables) {
    std::vector<std::string> lines;
    lines.reserve(variables.size());
    for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
    return lines;
}

// Only a terminal that the job has may be passed on; a job in the background must not steal it.
bool may_take_terminal(const Spawn& order, int input, const SpawnSettings& settings) {
    return order.plan.owns_stdin && ::isatty(input) == 1 &&
           ::tcgetpgrp(input) == settings.job_group;
}

SpawnResult refuse(const Spawn& order, int error_number, const char* stage, std::string path) {
    SpawnResult result;
    result.refused = {order.round, order.plan.local_rank, error_number, stage, std::move(path)};
    return result;
}

}  // namespace

const char* name_of(SpawnStage stage) {
    switch (stage) {
        case SpawnStage::descriptors:
            return "descriptors";
        case SpawnStage::session:
            return "session";
        case SpawnStage::limits:
            return "limits";
        case SpawnStage::affinity:
            return "affinity";
        case SpawnStage::memory_policy:
            return "memory policy";
        case SpawnStage::exec:
            return "exec";
    }
    return "";
}

SpawnResult spawn_worker(const Spawn& order, const std::vector<UniqueFd>& streams,
                         const SpawnSettings& settings) {
    const bool all_there = std::all_of(streams.begin(), streams.end(),
                                       [](const UniqueFd& fd) { return static_cast<bool>(fd); });
    if (!all_there) return refuse(order, EMFILE, "descriptors", "");
    if (order.plan.argv.empty()) return refuse(order, ENOENT, "exec", "");
    ProgramFile program = find_program(order.plan.argv.front(), order.plan.environment);
    if (program.error_number != 0) {
        return refuse(order, program.error_number, "exec", std::move(program.path));
    }

    const std::vector<std::string> environment = assignments(order.plan.environment);
    const std::vector<const char*> envp = pointers_to(environment);
    const std::vector<const char*> argv = pointers_to(order.plan.argv);
    const bool takes_terminal = may_take_terminal(order, streams.front().get(), settings);
    WorkerLauncher launch;
    launch.env = envp.data();
    auto launched =
        launch(program.path, argv.data(), WorkerSetup{order, streams, settings, takes_terminal});
    if (launched.pid < 0) {
        return refuse(order, launched.error_number, launched.stage, std::move(program.path));
    }
    SpawnResult result;
    result.pid = launched.pid;
    result.report = std::move(launched.report);
    result.path = std::move(program.path);
    if (takes_terminal) {
        result.terminal = UniqueFd(::fcntl(streams.front().get(), F_DUPFD_CLOEXEC, 3));
    }
    return result;
}

}  // namespace ddrun::launcher::keeper
