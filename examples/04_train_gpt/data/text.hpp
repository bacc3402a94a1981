#pragma once

#include <filesystem>
#include <string>

namespace train_gpt {

// Text that every Debian machine carries.
constexpr auto default_text = "/usr/share/common-licenses";

// A file's bytes; for a folder, those of its regular files (links and subfolders are left out, so
// nothing is read twice), in the order of their names.
// Throws SetupError naming the path and the reason.
std::string read_text(const std::filesystem::path& path);

}  // namespace train_gpt
