#pragma once

#include "launcher/config/given.hpp"
#include "rendezvous/protocol/worker_env.hpp"

#include <string>
#include <vector>

namespace ddrun::launcher {

struct FromVariables {
    std::vector<Given> given;  // what counts more comes later: torchrun's own names, PET_*, DDRUN_*
    std::vector<std::string> warnings;  // DDRUN_* that nobody knows; PET_* that look mistyped
};

// Inside a worker of another ddrun (DDRUN_WORKER_TAG is set), variables of that worker which share
// a name with an option (DDRUN_LOG_DIR ...) are not taken for options.
[[nodiscard]] FromVariables read_variables(const Variables& environment);

}  // namespace ddrun::launcher
