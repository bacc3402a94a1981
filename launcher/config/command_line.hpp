#pragma once

#include "launcher/config/given.hpp"

#include <optional>
#include <string>
#include <vector>

// Cuts ddrun's own arguments from the program's. A scanner over the option table instead of a
// library: those at hand take an unknown flag for the program once parsing stops at the first
// non-option, know one spelling per flag, and build dozens of objects at each start.
namespace ddrun::launcher {

struct CommandLine {
    std::vector<Given> given;         // in order
    const Option* command = nullptr;  // --help and the like: the first one ends the scan
    std::string command_text;
    std::optional<std::string> program;  // first word that is no flag, or the one behind "--"
    std::vector<std::string> arguments;  // all that follow, byte for byte
    std::string problem;                 // not empty: the scan ended here
};

[[nodiscard]] CommandLine scan_command_line(const std::vector<std::string>& arguments);

}  // namespace ddrun::launcher
