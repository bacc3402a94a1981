#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace train_gpt {

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The words of the error that `call` throws; "no error" if it throws none.
template <typename Error = std::exception, typename Call>
std::string error_words(Call call) {
    try {
        call();
        return "no error";
    } catch (const Error& error) {
        return error.what();
    }
}

}  // namespace train_gpt
