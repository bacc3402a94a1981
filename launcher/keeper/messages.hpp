#pragma once

#include "launcher/core/worker_plan.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// What the agent and its keeper say over their socket pair. Same binary on both ends, so there is
// no version; the frame length is bounded all the same. Layout: u32 little-endian length, u8 type,
// body.
namespace ddrun::launcher::keeper {

// argv and environment of one exec are bounded by the kernel at 6 MiB.
constexpr std::size_t max_link_frame_bytes = 16u << 20;
// stdin, stdout, stderr of the worker ride along with Spawn; no other message carries any.
constexpr std::size_t spawn_descriptors = 3;

// --- agent to keeper --------------------------------------------------------------------------
// Answered once: Spawned, when the program was executed, or NotSpawned, when nothing of it is left.
struct Spawn {
    int round = 0;
    WorkerPlan plan;
    bool strict_binding = false;  // a refused affinity or memory policy is NotSpawned, not a remark
};
struct Signal {  // to these workers (all living ones when empty)
    int round = 0;
    int signal = 0;
    std::vector<int> local_ranks;
    bool whole_group = true;  // their process groups; else the workers alone
};
// SIGKILL every descendant, whatever its session; ends with RoundClear. Helpers that outlive the
// workers get `helper_grace_ms` to end by themselves (Python's resource tracker removes shared
// memory then); 0: none. While no worker lives, a CleanUp under way is waited for first.
struct KillRound {
    int round = 0;
    int helper_grace_ms = 0;
};
// This worker has ended: what it left behind, found by its tag or session, gets a short grace, is
// reported as LeftBehind and killed. No answer when there was nothing.
struct CleanUp {
    int round = 0;
    int local_rank = 0;
};
struct Inspect {  // what is this worker doing? state, wait channel, kernel stack where readable
    int round = 0;
    int local_rank = 0;
};
// SIGSTOP / SIGCONT to every tree; a terminal that a worker owns is handed back / given again. The
// workers' own stops that this causes are not reported. A stop is answered by Suspended.
struct Suspend {
    bool stop = true;
};
// This node may run workers until then, by the monotonic clock that both read. Without a later
// lease the keeper stops every tree by itself then, since the agent may be stopped or hang, and
// kills them `grace_ns` after that; a later lease lets go on what only the keeper stopped. 0: no
// lease is needed.
struct Lease {
    std::int64_t until_ns = 0;
    std::int64_t grace_ns = 0;
};
// If the agent dies: what to tell the job's server, as it is, once nothing of this node is left.
struct LastWords {
    std::string address;  // "10.9.0.1:29400", "[fd00::1]:29400"; empty: nobody
    std::string bytes;
};
// Files, sockets, directories with all that is in them: to be removed if the agent dies.
struct Remove {
    std::vector<std::string> paths;
};
struct Quit {};  // normal end: nothing is running, exit
using ToKeeper = std::variant<Spawn, Signal, KillRound, CleanUp, Inspect, Suspend, Lease, LastWords,
                              Remove, Quit>;

// --- keeper to agent --------------------------------------------------------------------------
struct Spawned {
    int round = 0;
    int local_rank = 0;
    int pid = 0;
    std::string refused_binding;  // "affinity: Invalid argument"; empty: all was applied
};
struct NotSpawned {
    int round = 0;
    int local_rank = 0;
    int error_number = 0;
    std::string stage;  // "fork", "descriptors", "session", "affinity", "memory policy", "exec" ...
    std::string path;   // stage "exec": the file that was tried; empty: not found in PATH
};
struct Exited {
    int round = 0;
    int local_rank = 0;
    int pid = 0;
    int wait_status = 0;     // raw, of wait(2)
    std::int64_t at_ns = 0;  // at the reap, by the monotonic clock that the agent reads too
    std::int64_t max_rss_kib = 0;
};
struct StoppedOrContinued {
    int round = 0;
    int local_rank = 0;
    bool stopped = false;
};
struct LeftBehind {
    int round = 0;
    int local_rank = 0;
    std::vector<std::pair<int, std::string>> processes;  // pid, command
};
struct RoundClear {  // no descendant of the keeper is left
    int round = 0;
};
struct Stuck {  // still there long after SIGKILL; told once for each process
    int round = 0;
    int pid = 0;
    int local_rank = -1;  // -1: not known whose it is
    std::string command;
    std::string held_by;  // "waiting in nfs_wait", "traced by pid 7"; empty: unknown
};
struct Inspected {
    int round = 0;
    int local_rank = 0;
    std::string words;
};
struct Suspended {};  // every tree has its SIGSTOP, the terminal is handed back
using FromKeeper = std::variant<Spawned, NotSpawned, Exited, StoppedOrContinued, LeftBehind,
                                RoundClear, Stuck, Inspected, Suspended>;

[[nodiscard]] std::string encode(const ToKeeper& message);  // whole frame
[[nodiscard]] std::string encode(const FromKeeper& message);
[[nodiscard]] std::optional<ToKeeper> decode_to_keeper(std::string_view body);
[[nodiscard]] std::optional<FromKeeper> decode_from_keeper(std::string_view body);

}  // namespace ddrun::launcher::keeper
