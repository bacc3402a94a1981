#pragma once

#include <stdexcept>
#include <string>

namespace ddrun::launcher {

// The job cannot be started: one sentence for people and ddrun's exit code. Thrown by the steps
// that run before the first worker, caught in main() only.
class Refusal : public std::runtime_error {
  public:
    Refusal(int code, const std::string& words) : std::runtime_error(words), exit_code(code) {}
    int exit_code;
};

// "Permission denied"; the number when there is no text. Thread-safe.
[[nodiscard]] std::string error_text(int error_number);

}  // namespace ddrun::launcher
