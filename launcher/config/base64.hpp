#pragma once

#include <optional>
#include <string>
#include <string_view>

// For !!binary in job files. (yaml-cpp 0.7's own decoder reads outside its table for bytes above
// 127.)
namespace ddrun::launcher {

[[nodiscard]] std::string encode_base64(std::string_view bytes);
// Spaces and line breaks are skipped; nothing when the rest is not base64, padding included.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace ddrun::launcher
