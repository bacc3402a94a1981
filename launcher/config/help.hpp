#pragma once

#include <string>

namespace ddrun::launcher {

[[nodiscard]] std::string short_help();    // one screen: 80 columns, 24 lines
[[nodiscard]] std::string full_help();     // every flag with its default, variables, exit codes
[[nodiscard]] std::string version_line();  // "ddrun 0.1.0"
[[nodiscard]] std::string version_text();  // with how it was built

}  // namespace ddrun::launcher
