#pragma once

#include "launcher/core/worker_plan.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// What the agent and its keeper say over their socket pair. Same binary on both ends, so there is no
// version; the frame length is bounded all the same. Layout: u32 little-endian length, u8 type, body.
namespace ddrun::launcher::keeper {

// --- agent to keeper --------------------------------------------------------------------------
// stdin, stdout, stderr of the worker ride along as three descriptors.
struct Spawn {
    int round = 0;
    WorkerPlan plan;
};
struct Signal {           // to the process groups of these workers (all living ones when empty)
    int round = 0;
    int signal = 0;
    std::vector<int> local_ranks;
};
struct KillRound {        // SIGKILL every descendant, whatever its session; ends with RoundClear
    int round = 0;
};
struct CleanUp {          // this worker has ended: kill what it left behind, found by its tag
    int round = 0;
    int local_rank = 0;
};
struct Inspect {          // what is this worker doing? state, wait channel, kernel stack where readable
    int round = 0;
    int local_rank = 0;
};
struct Suspend { bool stop = true; };           // SIGSTOP / SIGCONT to every tree
struct Remove { std::vector<std::string> paths; };  // remember to remove these if the agent dies (files, sockets, directories)
struct Quit {};           // normal end: nothing is running, exit
using ToKeeper = std::variant<Spawn, Signal, KillRound, CleanUp, Inspect, Suspend, Remove, Quit>;

// --- keeper to agent --------------------------------------------------------------------------
struct Spawned { int round = 0; int local_rank = 0; int pid = 0; };
struct NotSpawned {
    int round = 0;
    int local_rank = 0;
    int error_number = 0;
    std::string stage;    // "fork", "chdir", "exec", "affinity" ...
};
struct Exited {
    int round = 0;
    int local_rank = 0;
    int pid = 0;
    int wait_status = 0;       // raw, of wait(2)
    std::int64_t at_ns = 0;    // keeper's monotonic clock at the reap (the same machine, so the agent may compare)
    std::int64_t max_rss_kib = 0;
};
struct StoppedOrContinued { int round = 0; int local_rank = 0; bool stopped = false; };
struct LeftBehind { int round = 0; int local_rank = 0; std::vector<std::pair<int, std::string>> processes; };
struct RoundClear { int round = 0; };     // no descendant of the keeper is left
struct Stuck { int round = 0; int pid = 0; int local_rank = -1; std::string command; std::string wait_channel; };
struct Inspected { int round = 0; int local_rank = 0; std::string words; };
using FromKeeper = std::variant<Spawned, NotSpawned, Exited, StoppedOrContinued, LeftBehind, RoundClear, Stuck, Inspected>;

[[nodiscard]] std::string encode(const ToKeeper& message);    // whole frame
[[nodiscard]] std::string encode(const FromKeeper& message);
[[nodiscard]] std::optional<ToKeeper> decode_to_keeper(std::string_view body);
[[nodiscard]] std::optional<FromKeeper> decode_from_keeper(std::string_view body);

}  // namespace ddrun::launcher::keeper
