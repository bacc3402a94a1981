#pragma once

#include <string_view>

namespace ddrun::launcher {

// What ddrun ends with, in words; --help=all, the man page and the README show this table.
struct ExitCode {
    std::string_view code;
    std::string_view meaning;
    std::string_view retry;
};
inline constexpr ExitCode exit_codes[] = {
    {"0", "every worker exited 0", "-"},
    {"n", "the root-cause worker's own code, on every node", "its own contract"},
    {"128+s", "the root-cause worker died by signal s, or ddrun was told to stop by s", "usually"},
    {"2", "usage: flags, environment, job file, missing secret", "no"},
    {"70", "bug in ddrun", "report"},
    {"71", "the system refused (fork, descriptors, a taken port), or this node is unfit",
     "elsewhere"},
    {"75", "the group could not be formed or was lost", "yes"},
    {"77", "not authorised, wrong job, incompatible versions or sizes", "no"},
    {"93", "a worker said \"never retry\"", "no"},
    {"124", "hang or early-exit time-out", "yes"},
    {"126", "program not executable", "no"},
    {"127", "program not found", "no"},
};

}  // namespace ddrun::launcher
