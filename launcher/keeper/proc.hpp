#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What /proc says about a process. Every answer may be out of date when it arrives; empty answers
// mean that the process is gone or hidden from us.
namespace ddrun::launcher::keeper {

struct ProcessFacts {
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t session = 0;
    char state = '?';  // as in /proc/PID/stat
    std::string name;  // of the executable, at most 15 bytes
};
[[nodiscard]] std::optional<ProcessFacts> read_process(pid_t pid);

// Direct children of a process, those of all its threads. A list is no snapshot: when children come
// and go while it is read, some may be missing, so whoever needs all of them asks again.
[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);

// Every pid in /proc.
[[nodiscard]] std::vector<pid_t> all_processes();

// Threads of a process, by number.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t pid);

// As in /proc/PID/stat; '?' when the thread is gone.
[[nodiscard]] char state_of_thread(pid_t pid, pid_t thread);

// "sleep 999": arguments joined by blanks and cut; "[name]" when there are none, or when one of its
// threads is in uninterruptible sleep (state D), where reading could wait as long as it does.
[[nodiscard]] std::string command_of(pid_t pid);
[[nodiscard]] std::string command_line(const std::vector<std::string>& arguments);

// Value of a variable in the environment the process was started with; none in state D, as above.
[[nodiscard]] std::optional<std::string> environment_value(pid_t pid, std::string_view name);

// At most `limit` bytes of /proc/PID/FILE; "" when it cannot be read.
[[nodiscard]] std::string read_proc_file(pid_t pid, std::string_view file, std::size_t limit);

// The kernel function a process sleeps in; "" when it runs or the kernel does not say.
[[nodiscard]] std::string wait_channel_of(pid_t pid);

}  // namespace ddrun::launcher::keeper
