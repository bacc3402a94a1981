#pragma once

#include <charconv>
#include <optional>
#include <string>

namespace ddrun::launcher {

// A decimal number from 0 on, and nothing beside it; nullopt: it is not one.
[[nodiscard]] inline std::optional<int> natural_number(const std::string& text) {
    int number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest != end || number < 0) return std::nullopt;
    return number;
}

[[nodiscard]] inline std::string not_a_number(const std::string& variable,
                                              const std::string& value) {
    return variable + "='" + value + "' is not a number";
}

}  // namespace ddrun::launcher
