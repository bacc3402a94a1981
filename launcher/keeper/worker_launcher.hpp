#pragma once

#include "launcher/keeper/unique_fd.hpp"

#include <algorithm>  // the library's header uses it without including it

#include <boost/process/v2/posix/default_launcher.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ddrun::launcher::keeper {

namespace process = boost::process::v2;

// A launcher for Boost.Process with the library's protocol of initializers, unlike its own in one
// point: it returns after the fork and lets the caller watch for the outcome of the exec.
//  - default_launcher waits for each exec before the next fork. On a busy machine every one of
//  those waits
//    costs a turn of the scheduler: 8 x /bin/true took 25-40 ms, this takes 5-6, as a bare loop
//    does. It also waits without a deadline when the program lies on a file server that does not
//    answer.
//  - vfork_launcher has that wait too, runs exit handlers in the parent's memory when exec fails,
//  and
//    (1.81) breaks the parent's reactor.
//  - Both return a basic_process, which kills its child when destroyed and registers with an Asio
//  reactor;
//    the keeper has a loop of its own. Their close_all (1.81) leaves gaps open; all our descriptors
//    are close-on-exec, so nothing has to be closed.
struct WorkerLauncher : process::posix::default_launcher {
    struct Launched {
        pid_t pid = -1;
        // Initializers write to the other end what they have to say; end of file: the exec has
        // happened, or the child has died.
        UniqueFd report;
        int error_number = 0;  // pid -1: why
        const char* stage = "";
    };

    // Initializers' `on_exec_setup(launcher, executable, argv)` run in the child, in order; the
    // first that returns an error ends it. `on_exec_failed(launcher, error)` tells of a refused
    // exec.
    template <typename Initializer>
    Launched operator()(const process::filesystem::path& executable, const char* const* argv,
                        Initializer initializer) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {-1, {}, errno, "descriptors"};
        UniqueFd read_end(ends[0]);
        const UniqueFd write_end(ends[1]);
        pid = ::fork();
        if (pid == 0) {
            report_fd = write_end.get();
            process::error_code error =
                process::posix::detail::on_exec_setup(*this, executable, argv, initializer);
            if (!error) {
                ::execve(executable.c_str(), const_cast<char* const*>(argv),
                         const_cast<char* const*>(env));
                initializer.on_exec_failed(*this, errno);
            }
            ::_exit(127);
        }
        if (pid < 0) return {-1, {}, errno, "fork"};
        return {pid, std::move(read_end), 0, ""};
    }

    int report_fd = -1;  // in the child only
};

}  // namespace ddrun::launcher::keeper
