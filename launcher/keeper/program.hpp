#pragma once

#include "rendezvous/protocol/worker_env.hpp"

#include <string>

namespace ddrun::launcher::keeper {

struct ProgramFile {
    std::string path;      // what to execute; empty: not found
    int error_number = 0;  // why not, when it is known before trying
};

// The file that execvp would execute for `name`, with the worker's own PATH: as it is when it has a
// slash, else the first executable one, else the first that exists.
[[nodiscard]] ProgramFile find_program(const std::string& name, const Variables& environment);

}  // namespace ddrun::launcher::keeper
