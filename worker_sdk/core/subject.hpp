#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddrun::detail {

// What a request is about. Kept with every request, put into words only for an error.
struct Subject {
    static constexpr std::size_t shown = 80;

    Subject(const char* verb_literal, std::string_view about_key = {}, std::size_t further_keys = 0)
        : verb(verb_literal), key(about_key.substr(0, shown)), more_keys(further_keys) {}

    const char* verb;  // lives for ever
    std::string key;   // empty: about none; cut to `shown` bytes
    std::size_t more_keys;

    // "store get 'a' and 2 more keys".
    [[nodiscard]] std::string words() const;
};

}  // namespace ddrun::detail
