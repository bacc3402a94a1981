#pragma once

#include <sys/types.h>

namespace ddrun::launcher::keeper {

struct KeeperProcess {
    pid_t pid = -1;
    int link = -1;  // the agent's end of the socket pair; close-on-exec
};

// What workers get back, and the keeper's patience.
struct WorkerDefaults {
    bool ignore_hangup = false;  // SIGHUP was ignored when ddrun started and stays so in workers
    // The soft RLIMIT_NOFILE from before ddrun raised it; 0: leave as it is.
    unsigned long long nofile_soft = 0;
    int stuck_after_ms = 10000;   // a process still there so long after SIGKILL is Stuck
    int leftover_grace_ms = 250;  // what an ended worker left may end by itself for so long
};

// Forks the keeper. Call before any thread exists, with every signal that ddrun handles blocked and
// descriptors 0 to 2 open.
// The child never returns: it kills and reaps workers and all their descendants when the link
// closes, without a Quit also removes the paths it was told about, and exits. Makes the caller a
// subreaper. Throws std::system_error naming the call.
[[nodiscard]] KeeperProcess start_keeper(const WorkerDefaults& defaults);

// Kills and reaps every descendant of the calling process, in any session; returns false when some
// are still there after `patience_ms`. Used by the keeper, and by the agent when the keeper died.
[[nodiscard]] bool end_all_descendants(int patience_ms);

}  // namespace ddrun::launcher::keeper
