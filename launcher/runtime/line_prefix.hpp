#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/runtime/output/prefix_template.hpp"

#include <string>

namespace ddrun::launcher {

// Whether text on this descriptor may have colours: a terminal, and neither NO_COLOR nor TERM=dumb.
[[nodiscard]] bool colour_wanted(int descriptor);

// The prefix of one rank's lines, from --log-line-prefix-template or the default: "[${rank}] ",
// with the node in front where there are several.
[[nodiscard]] std::string render_line_prefix(const JobSpec& spec, const PrefixValues& values,
                                             bool colour);

}  // namespace ddrun::launcher
