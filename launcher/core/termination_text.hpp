#pragma once

#include <cstddef>
#include <string>

namespace ddrun::launcher {

// What a kubelet takes of a container's last words.
constexpr std::size_t largest_termination_text = 4096;

// The last words of a run for those who see only a pod's status: `summary` (stderr's last lines,
// "ddrun: " before each) without that prefix, its first line the cause, then "exit code N", then
// the rest, whole lines as far as they fit and never half a UTF-8 character.
[[nodiscard]] std::string termination_text(const std::string& summary, int exit_code);

}  // namespace ddrun::launcher
