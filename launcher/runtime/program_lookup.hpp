#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/core/worker_plan.hpp"

#include <string>

namespace ddrun::launcher {

// Throws Refusal (127 not found, 126 found but cannot be executed) when the program, its
// interpreter or the command of --prefix-command cannot be started, with the workers' PATH. Runs
// nothing.
void require_program(const JobSpec& spec, const MachineFacts& facts);

// One line about an exec that the kernel refused: the name as given, what it resolved to, the
// working directory, whether PATH was searched, and why.
[[nodiscard]] std::string exec_failure_words(const std::string& program,
                                             const Variables& environment, int error_number);
// 127 for a missing file, 126 for everything else.
[[nodiscard]] int exec_failure_code(int error_number);

}  // namespace ddrun::launcher
