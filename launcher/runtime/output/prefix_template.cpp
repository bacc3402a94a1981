#include "launcher/runtime/output/prefix_template.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace ddrun::launcher {

namespace {

constexpr std::string_view time_mark = "${time}";
constexpr const char* known_names =
    "${rank}, ${local_rank}, ${node}, ${role_name}, ${hostname}, ${attempt} and ${time}";

std::optional<std::string> value_of(std::string_view name, const PrefixValues& values) {
    if (name == "rank") return std::to_string(values.rank);
    if (name == "local_rank") return std::to_string(values.local_rank);
    if (name == "attempt") return std::to_string(values.attempt);
    if (name == "node") return values.node;
    if (name == "role_name") return values.role_name;
    if (name == "hostname") return values.hostname;
    if (name == "time") return std::string(time_mark);
    return std::nullopt;
}

// One step through a template: a literal run, "$$", or a name in braces.
struct Token {
    std::size_t length = 0;
    std::string_view name;     // of a ${name}
    std::string_view literal;  // of anything else
    bool closed = true;
};

Token next_token(std::string_view text) {
    if (text.starts_with("$$")) return {2, {}, text.substr(0, 1)};
    if (text.starts_with("${")) {
        const auto brace = text.find('}');
        if (brace == std::string_view::npos) return {text.size(), {}, text, false};
        return {brace + 1, text.substr(2, brace - 2), {}};
    }
    const auto dollar = text.find('$', 1);
    const auto length = dollar == std::string_view::npos ? text.size() : dollar;
    return {length, {}, text.substr(0, length)};
}

std::string time_text(std::chrono::system_clock::time_point now) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    const auto millis =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() %
        1000;
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    std::array<char, 40> text{};
    const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
    std::snprintf(text.data() + length, text.size() - length, ".%03d", static_cast<int>(millis));
    return text.data();
}

}  // namespace

std::optional<std::string> prefix_template_error(std::string_view text) {
    while (!text.empty()) {
        const Token token = next_token(text);
        if (!token.closed) return std::string(token.literal).append(": '${' without '}'");
        if (token.literal.empty() && !value_of(token.name, {}))
            return std::string("${").append(token.name).append("} does not exist; there are ") +
                   known_names;
        text.remove_prefix(token.length);
    }
    return std::nullopt;
}

std::string expand_prefix(std::string_view text, const PrefixValues& values) {
    std::string expanded;
    while (!text.empty()) {
        const Token token = next_token(text);
        expanded += token.literal;
        if (token.literal.empty()) expanded += value_of(token.name, values).value_or("");
        text.remove_prefix(token.length);
    }
    return expanded;
}

LinePrefix::LinePrefix(std::string expanded)
    : expanded_(std::move(expanded)), has_time_(expanded_.find(time_mark) != std::string::npos) {}

std::string_view LinePrefix::at(std::chrono::system_clock::time_point now) {
    if (!has_time_) return expanded_;
    rendered_ = expanded_;
    const std::string time = time_text(now);
    for (auto at = rendered_.find(time_mark); at != std::string::npos;
         at = rendered_.find(time_mark, at))
        rendered_.replace(at, time_mark.size(), time);
    return rendered_;
}

}  // namespace ddrun::launcher
