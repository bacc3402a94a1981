#pragma once

#include "launcher/keeper/messages.hpp"
#include "launcher/keeper/unique_fd.hpp"

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher::keeper {

// What is the same for every worker; read once when the keeper starts.
struct SpawnSettings {
    pid_t keeper = 0;                    // a worker whose parent is no longer this one ends at once
    unsigned long long nofile_soft = 0;  // 0: leave as it is
    int oom_score_adj = 0;
    pid_t job_group = 0;  // ddrun's process group, which may own the terminal
};

// What a child says before its exec: a refused binding, or why there will be no exec.
enum class SpawnStage : int {
    descriptors,
    session,
    limits,
    affinity,
    memory_policy,
    exec,
};
[[nodiscard]] const char* name_of(SpawnStage stage);
struct SpawnReport {
    SpawnStage stage = SpawnStage::exec;
    int error_number = 0;
    bool fatal = false;
};

struct SpawnResult {
    pid_t pid = -1;     // -1: `refused` says why
    UniqueFd report;    // SpawnReports; end of file: executed, or dead
    UniqueFd terminal;  // the worker owns this terminal now
    std::string path;   // of the program
    NotSpawned refused;
};

// Forks and lets the child execute the program: leader of its own session (the owner of a terminal
// on stdin: leader of a process group that has the foreground), dies with the keeper, default
// signals, limits restored, nothing inherited but the three `streams` and the working directory.
// Does not wait for the exec. Every signal must be blocked and have the disposition that workers
// shall get.
[[nodiscard]] SpawnResult spawn_worker(const Spawn& order, const std::vector<UniqueFd>& streams,
                                       const SpawnSettings& settings);

}  // namespace ddrun::launcher::keeper
