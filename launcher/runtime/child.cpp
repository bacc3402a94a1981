#include "launcher/runtime/child.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

namespace ddrun::launcher {

std::optional<int> reap_child(int pid, std::chrono::milliseconds patience) {
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    if (process && ::poll(&ended, 1, static_cast<int>(patience.count())) == 0) {
        ::kill(pid, SIGKILL);
    }
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = ::waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
    return reaped == pid ? std::optional<int>(status) : std::nullopt;
}

}  // namespace ddrun::launcher
