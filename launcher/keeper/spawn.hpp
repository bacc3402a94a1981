#pragma once

#include "launcher/keeper/messages.hpp"
#include "launcher/keeper/spawn_report.hpp"
#include "launcher/keeper/worker_setup.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <sys/types.h>
#include <termios.h>

#include <optional>
#include <vector>

namespace ddrun::launcher::keeper {

struct SpawnResult {
    pid_t pid = -1;                // -1: `refused` says why
    UniqueFd report;               // see read_spawn_report
    UniqueFd terminal;             // the worker shares this terminal
    std::optional<termios> modes;  // of the terminal, before the worker had it
    SpawnFailure refused;
};

[[nodiscard]] std::optional<termios> terminal_modes(int terminal);

// Forks and lets the child execute the program: leader of its own session (the owner of a terminal
// on stdin: leader of a process group, in the foreground if the job is), dies with the keeper,
// default signals, limits restored, nothing inherited but the three `streams` and the working
// directory. Does not wait for the exec. Every signal must be blocked and have the disposition that
// workers shall get.
[[nodiscard]] SpawnResult spawn_worker(const Spawn& order, const std::vector<UniqueFd>& streams,
                                       const SpawnSettings& settings);

}  // namespace ddrun::launcher::keeper
