#pragma once

#include <string>

namespace ddrun::launcher {

// Completion scripts, made from the table of options; behind the program its own completion works.
[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();

}  // namespace ddrun::launcher
