#include "launcher/runtime/process_setup.hpp"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

namespace ddrun::launcher {

void open_missing_standard_streams() {
    for (int fd = 0; fd <= 2; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0) {
            // The lowest free number is this one, since the lower ones are open by now.
            (void)::open("/dev/null", O_RDWR | O_NOCTTY);
        }
    }
}

InheritedState prepare_process() {
    InheritedState inherited;
    struct sigaction current {};
    ::sigaction(SIGHUP, nullptr, &current);
    inherited.hangup_ignored = current.sa_handler == SIG_IGN;

    // A shell starts background jobs with SIGINT and SIGQUIT ignored; a supervisor must hear them.
    // An ignored SIGCHLD would make the kernel forget how children ended.
    for (int signal = 1; signal < NSIG; ++signal) {
        if (signal != SIGHUP && signal != SIGPIPE && signal != SIGXFSZ) {
            ::signal(signal, SIG_DFL);
        }
    }
    // A write tells by its errno.
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);

    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        inherited.nofile_soft = files.rlim_cur;
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
    return inherited;
}

sigset_t watched_signals(const std::vector<int>& stop_signals, const InheritedState& inherited) {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : stop_signals) {
        ::sigaddset(&signals, signal);
    }
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP,
                             SIGCONT, SIGCHLD}) {
        ::sigaddset(&signals, signal);
    }
    if (inherited.hangup_ignored) {
        ::sigdelset(&signals, SIGHUP);
    }
    return signals;
}

void block_signals(const sigset_t& signals) {
    sigset_t blocked = signals;
    // Writing to a terminal that belongs to another process group must not stop ddrun.
    ::sigaddset(&blocked, SIGTTOU);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

namespace {

sigjmp_buf continued;

extern "C" void leave_the_stop(int) {
    siglongjmp(continued, 1);
}

}  // namespace

// The kernel forgets a waiting SIGCONT when it stops a process. So whoever says "go on" a moment
// before the stop must prevent it: from before the last instruction towards the stop, SIGCONT leads
// away from it, by a jump out of its handler. Nothing in between has a destructor.
void stop_this_process() {
    struct sigaction jump {};
    struct sigaction usual {};
    jump.sa_handler = leave_the_stop;
    ::sigaction(SIGCONT, &jump, &usual);
    sigset_t both;
    sigset_t before;
    ::sigemptyset(&both);
    ::sigaddset(&both, SIGTSTP);
    ::sigaddset(&both, SIGCONT);
    ::pthread_sigmask(SIG_BLOCK, &both, &before);
    if (sigsetjmp(continued, 0) == 0) {
        ::pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
        ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGTSTP);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::sigaction(SIGCONT, &usual, nullptr);
}

}  // namespace ddrun::launcher
