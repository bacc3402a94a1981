#pragma once

#include "rendezvous/platform/unique_fd.hpp"

#include <algorithm>  // the library's header uses it without including it

#include <boost/process/v2/posix/default_launcher.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ddrun::launcher::keeper {

namespace process = boost::process::v2;

// A launcher for Boost.Process with the library's protocol of initializers. Unlike its own ones it
// returns after the fork and lets the caller watch for the outcome of the exec.
//
// default_launcher waits for each exec before the next fork. On a busy machine each of these waits
// costs a turn of the scheduler: 8 x /bin/true took 25 to 40 ms, and takes 5 to 7 this way, as in a
// bare loop. The wait has no deadline either, when the program lies on a file server that does not
// answer. vfork_launcher waits as well, runs exit handlers in the parent's memory when the exec
// fails, and (in 1.81) leaves the parent's reactor broken. Both return a basic_process, which kills
// its child when destroyed and belongs to an Asio reactor; the keeper has a loop of its own. What
// they call to close descriptors (in 1.81) skips gaps.
struct WorkerLauncher : process::posix::default_launcher {
    struct Launched {
        pid_t pid = -1;
        UniqueFd report;       // what the child writes to `report_fd`; ends with its exec or death
        int error_number = 0;  // pid -1: why
        const char* stage = "";
    };

    // In the child: `on_exec_setup(launcher, executable, argv)`, then `on_exec` with the same
    // arguments, which returns only when it failed. An error of the first ends the child.
    template <typename Initializer>
    Launched operator()(const char* executable, const char* const* argv, Initializer initializer) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {-1, {}, errno, "descriptors"};
        UniqueFd read_end(ends[0]);
        const UniqueFd write_end(ends[1]);
        pid = ::fork();
        if (pid == 0) {
            report_fd = write_end.get();
            const process::filesystem::path path(executable);
            const process::error_code error =
                process::posix::detail::on_exec_setup(*this, path, argv, initializer);
            if (!error) initializer.on_exec(*this, path, argv);
            ::_exit(127);
        }
        if (pid < 0) return {-1, {}, errno, "fork"};
        return {pid, std::move(read_end), 0, ""};
    }

    int report_fd = -1;  // in the child only
};

}  // namespace ddrun::launcher::keeper
