#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/runtime/output/prefix_template.hpp"

#include <optional>
#include <string>

namespace ddrun::launcher {

// Whether text on this descriptor may have colours: a terminal, and neither NO_COLOR nor TERM=dumb.
[[nodiscard]] bool colour_wanted(int descriptor);

// Nothing when --log-line-prefix-template is right or not given, else what is wrong with it.
[[nodiscard]] std::optional<std::string> line_prefix_problem(const JobSpec& spec);

// The prefix of one rank's lines, from --log-line-prefix-template or the default: "[${rank}] ",
// with the node in front where there are several.
[[nodiscard]] std::string render_line_prefix(const JobSpec& spec, const PrefixValues& values,
                                             bool colour);

}  // namespace ddrun::launcher
