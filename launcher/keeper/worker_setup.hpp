#pragma once

#include "launcher/keeper/messages.hpp"
#include "launcher/keeper/worker_launcher.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <sys/types.h>

#include <vector>

namespace ddrun::launcher::keeper {

// What is the same for every worker; read once when the keeper starts.
struct SpawnSettings {
    pid_t keeper = 0;                    // a worker whose parent is no longer this one ends at once
    unsigned long long nofile_soft = 0;  // 0: leave as it is
    int oom_score_adj = 0;
    pid_t job_group = 0;  // ddrun's process group, which may own the terminal
};

// What the owner of stdin gets of ddrun's terminal.
enum class TerminalShare {
    none,        // stdin is no terminal of this session
    background,  // the job is not in the foreground: the first read stops it, as any other job
    foreground
};

// Initializer for WorkerLauncher: makes the forked child what a worker is, and executes its
// program.
struct WorkerSetup {
    const Spawn& order;
    const std::vector<UniqueFd>& streams;
    const SpawnSettings& settings;
    TerminalShare terminal = TerminalShare::none;

    process::error_code on_exec_setup(const WorkerLauncher& launcher,
                                      const process::filesystem::path& executable,
                                      const char* const*(&argv)) const;
    void on_exec(const WorkerLauncher& launcher, const process::filesystem::path& executable,
                 const char* const* argv) const;
};

}  // namespace ddrun::launcher::keeper
