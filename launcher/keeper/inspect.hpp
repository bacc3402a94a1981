#pragma once

#include <sys/types.h>

#include <string>

namespace ddrun::launcher::keeper {

// What a process is doing, in a few lines for people: state, where it sleeps, its threads by what
// they do, its kernel stack where that may be read. Bounded; reads /proc only, and nothing there
// that could wait for the process.
[[nodiscard]] std::string inspect_process(pid_t pid, const std::string& command);

}  // namespace ddrun::launcher::keeper
