#pragma once

#include "launcher/runtime/job.hpp"

#include <string>

namespace ddrun::launcher {

// --dry-run: what each worker of this node would get. What is known only when the nodes have met
// stands in angle brackets.
[[nodiscard]] std::string dry_run_text(const Job& job);

}  // namespace ddrun::launcher
