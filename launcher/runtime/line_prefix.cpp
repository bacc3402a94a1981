#include "launcher/runtime/line_prefix.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace ddrun::launcher {
namespace {

// Neighbouring ranks get different colours; no red, which reads as an error.
std::string coloured(const std::string& text, int rank) {
    constexpr std::array codes = {"36", "32", "33", "35", "34", "96", "92", "95"};
    const auto index = static_cast<std::size_t>(rank) % codes.size();
    return std::string("\x1b[") + codes[index] + "m" + text + "\x1b[0m";
}

}  // namespace

bool colour_wanted(int descriptor) {
    const char* no_color = ::getenv("NO_COLOR");
    const char* terminal = ::getenv("TERM");
    const bool refused = (no_color != nullptr && *no_color != '\0') ||
                         (terminal != nullptr && std::string_view(terminal) == "dumb");
    return !refused && ::isatty(descriptor) == 1;
}

std::optional<std::string> line_prefix_problem(const JobSpec& spec) {
    return spec.line_prefix ? prefix_template_error(*spec.line_prefix) : std::nullopt;
}

std::string render_line_prefix(const JobSpec& spec, const PrefixValues& values, bool colour) {
    const std::string otherwise = spec.max_nodes > 1 ? "[${node}:${rank}] " : "[${rank}] ";
    const std::string prefix = expand_prefix(spec.line_prefix.value_or(otherwise), values);
    return prefix.empty() || !colour ? prefix : coloured(prefix, values.rank);
}

}  // namespace ddrun::launcher
