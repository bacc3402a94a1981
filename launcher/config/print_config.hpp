#pragma once

#include "launcher/config/config.hpp"
#include "launcher/config/draft.hpp"

#include <string>

namespace ddrun::launcher {

// Every value with its source, as a job file that gives the same job again.
[[nodiscard]] std::string print_config(const Draft& draft, const Sources& sources);

}  // namespace ddrun::launcher
