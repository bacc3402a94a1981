#pragma once

#include <cstdint>
#include <optional>
#include <string>

// Reading the small text files of /proc and /sys.
namespace ddrun::launcher {

// At most 64 KiB of it; empty when it cannot be read.
[[nodiscard]] std::string read_small_file(const std::string& path);

// The number that the text starts with, after blanks; nullopt: there is none.
[[nodiscard]] std::optional<std::int64_t> leading_number(const std::string& text);

}  // namespace ddrun::launcher
