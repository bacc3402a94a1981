#pragma once

#include <filesystem>
#include <string_view>

namespace train_gpt {

// Puts `bytes` at `path` so that, whenever the machine stops, either the whole file or none of it
// is there: temporary file in the same folder, fsync, rename, fsync of the folder. An older file at
// `path` is replaced. Throws std::system_error naming the path; the temporary file is then removed.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

// Where write_durably keeps the bytes of `path` until they are complete.
std::filesystem::path temporary_name(const std::filesystem::path& path);

}  // namespace train_gpt
