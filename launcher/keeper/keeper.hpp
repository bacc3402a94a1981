#pragma once

#include <sys/types.h>

namespace ddrun::launcher::keeper {

struct KeeperProcess {
    pid_t pid = -1;
    int link = -1;  // the agent's end of the socket pair; close-on-exec
};

// Forks the keeper. Call before any thread exists, with every signal that ddrun handles blocked.
// The child never returns. Makes the caller a subreaper. Throws std::system_error naming the call.
// `original_mask` and `original_limits` (RLIMIT_NOFILE soft value before ddrun raised it) are what
// workers get back; `ignore_hangup`: SIGHUP was ignored when ddrun started and stays so in workers.
struct WorkerDefaults {
    bool ignore_hangup = false;
    unsigned long long nofile_soft = 0;  // 0: leave as it is
};
[[nodiscard]] KeeperProcess start_keeper(const WorkerDefaults& defaults);

// Kills and reaps every descendant of the calling process but `spare` (0: none), in any session;
// returns false when some are still there after `patience_ms`. Used by the keeper, and by the agent when
// the keeper died.
[[nodiscard]] bool end_all_descendants(pid_t spare, int patience_ms);

}  // namespace ddrun::launcher::keeper
