#include "launcher/keeper/keeper.hpp"

#include "launcher/keeper/keeper_loop.hpp"
#include "launcher/keeper/proc.hpp"
#include "rendezvous/platform/last_words.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace ddrun::launcher::keeper {
namespace {

// Tenths of a percent of memory: workers are chosen before ddrun.
constexpr int oom_score_raise = 100;
constexpr int highest_oom_score = 1000;
constexpr int internal_error = 70;
constexpr auto last_words_limit = std::chrono::seconds(2);

[[noreturn]] void fail(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
}

// Standard streams become /dev/null, so that nobody waits for the end of a pipe that only the
// keeper holds open; everything else but the link is closed.
void keep_only(int link) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) ::dup2(null, fd);
    ::close(null);
    const auto kept = static_cast<unsigned>(link);
    if (kept > 3) ::syscall(SYS_close_range, 3u, kept - 1, 0u);
    ::syscall(SYS_close_range, kept + 1, UINT_MAX, 0u);
}

// Blocked signals and dispositions pass through fork and exec, so what is set here once is what
// every worker starts with; only the mask is cleared there.
void settle_signals(bool ignore_hangup) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    for (int signal = 1; signal < NSIG; ++signal) {
        const bool ignored = signal == SIGHUP && ignore_hangup;
        ::signal(signal, ignored ? SIG_IGN : SIG_DFL);
    }
}

int workers_oom_score() {
    const int own = std::atoi(read_proc_file(::getpid(), "oom_score_adj", 16).c_str());
    return std::min(own + oom_score_raise, highest_oom_score);
}

void remove_paths(const std::set<std::string>& paths) {
    for (const std::string& path : paths) {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
}

int live(UniqueFd link, const WorkerDefaults& defaults, pid_t job_group) {
    const SpawnSettings spawning{::getpid(), defaults.nofile_soft, workers_oom_score(), job_group};
    KeeperLoop loop(std::move(link), spawning, defaults);
    const KeeperLoop::End end = loop.run();
    loop.let_go();
    const bool gone = end_all_descendants(defaults.stuck_after_ms);
    if (end == KeeperLoop::End::agent_gone) {
        remove_paths(loop.paths());
        const LastWords& last_words = loop.last_words();
        // Where something is left, the others must wait until it cannot run any more.
        if (gone) detail::send_last_words(last_words.address, last_words.bytes, last_words_limit);
    }
    return gone ? 0 : internal_error;
}

[[noreturn]] void become_keeper(UniqueFd link, const WorkerDefaults& defaults) {
    const pid_t job_group = ::getpgrp();
    // A signal to ddrun's process group must not reach the one that cleans up after it.
    ::setpgid(0, 0);
    // Not "ddrun...": `pkill -9 ddrun` and `killall -9 ddrun` end the agent alone, and we clean up.
    ::prctl(PR_SET_NAME, "keeper");
    // If it is stopped when ddrun dies, it goes on and cleans up.
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    settle_signals(defaults.ignore_hangup);
    keep_only(link.get());
    int status = internal_error;
    try {
        if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("prctl(PR_SET_CHILD_SUBREAPER)");
        status = live(std::move(link), defaults, job_group);
    } catch (const std::exception&) {
        // The closed link tells the agent; there is nobody else to tell.
        (void)end_all_descendants(defaults.stuck_after_ms);
    }
    ::_exit(status);
}

}  // namespace

KeeperProcess start_keeper(const WorkerDefaults& defaults) {
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("prctl(PR_SET_CHILD_SUBREAPER)");
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) fail("fork of the keeper");
    if (pid == 0) {
        ours.reset();
        become_keeper(std::move(theirs), defaults);
    }
    return {pid, ours.release()};
}

}  // namespace ddrun::launcher::keeper
