#include "launcher/keeper/worker_setup.hpp"

#include "launcher/keeper/program.hpp"
#include "launcher/keeper/spawn_report.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <optional>
#include <string>

// Runs in the child, between fork and exec.
namespace ddrun::launcher::keeper {
namespace {

constexpr int preferred_policy = 1;  // MPOL_PREFERRED of <linux/mempolicy.h>

// Each returns 0 or an errno.
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

int lead_group(TerminalShare terminal) {
    if (terminal == TerminalShare::none) return ::setsid() < 0 ? errno : 0;
    if (::setpgid(0, 0) != 0) return errno;
    if (terminal == TerminalShare::background) return 0;
    // All signals are blocked here, SIGTTOU among them, so a background process may do this.
    return ::tcsetpgrp(STDIN_FILENO, ::getpid()) != 0 ? errno : 0;
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

// False: the child has to end.
bool check(int pipe, SpawnStage stage, int error_number, bool fatal) {
    if (error_number == 0) return true;
    report_refusal(pipe, stage, error_number, fatal);
    return !fatal;
}

}  // namespace

process::error_code WorkerSetup::on_exec_setup(const WorkerLauncher& launcher,
                                               const process::filesystem::path&,
                                               const char* const*(&)) const {
    const WorkerPlan& plan = order.plan;
    const bool strict = order.strict_binding;
    const int pipe = launcher.report_fd;
    const bool ready =
        check(pipe, SpawnStage::session, die_with(settings.keeper), true) &&
        check(pipe, SpawnStage::descriptors, place_streams(streams, pipe), true) &&
        check(pipe, SpawnStage::session, lead_group(terminal), true) &&
        check(pipe, SpawnStage::limits, restore_limits(settings.nofile_soft), true) &&
        check(pipe, SpawnStage::affinity, bind_to_cpus(plan.cpus), strict) &&
        check(pipe, SpawnStage::memory_policy, prefer_memory_of(plan.memory_node), strict);
    if (!ready) return {ECANCELED, process::system_category()};
    raise_oom_score(settings.oom_score_adj);
    unblock_signals();
    return {};
}

// The file is looked up here and not in the keeper, which must not wait for a file server.
void WorkerSetup::on_exec(const WorkerLauncher& launcher,
                          const process::filesystem::path& executable,
                          const char* const* argv) const {
    ProgramFile file = find_program(executable.native(), order.plan.environment);
    if (file.error_number == 0) {
        ::execve(file.path.c_str(), const_cast<char* const*>(argv),
                 const_cast<char* const*>(launcher.env));
        file.error_number = errno;
    }
    report_refusal(launcher.report_fd, SpawnStage::exec, file.error_number, true, file.path);
}

}  // namespace ddrun::launcher::keeper
