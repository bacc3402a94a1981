#include "launcher/core/words.hpp"

#include <algorithm>
#include <cstdio>

namespace ddrun::launcher {
namespace {

std::string number_text(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

// One decimal where it says something, none where it would be a zero.
std::string short_number(double value) {
    const std::string text = number_text(value, 1);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// The end of the control sequence that begins with the escape character at `at`.
std::size_t end_of_sequence(const std::string& text, std::size_t at) {
    constexpr char escape_bracket = '[';
    if (at + 1 >= text.size() || text[at + 1] != escape_bracket)
        return std::min(at + 2, text.size());
    for (std::size_t i = at + 2; i < text.size(); ++i) {
        if (text[i] >= '@' && text[i] <= '~') return i + 1;
    }
    return text.size();
}

}  // namespace

std::string plain_text(const std::string& line) {
    const auto visible = line.substr(0, line.find_last_not_of("\r\n") + 1);
    constexpr char escape = '\x1b';
    std::string text;
    for (std::size_t at = visible.rfind('\r') + 1; at < visible.size();) {
        const char c = visible[at];
        if (c != escape && !is_control(c)) text += c;
        at = c == escape ? end_of_sequence(visible, at) : at + 1;
    }
    return text;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

std::string number_ranges(std::vector<int> numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        if (!text.empty()) text += ", ";
        text += std::to_string(numbers[i]);
        if (last > i) text.append("-").append(std::to_string(numbers[last]));
        i = last + 1;
    }
    return text;
}

std::string rank_list(std::vector<int> ranks) {
    if (ranks.empty()) return "no rank";
    const auto text = number_ranges(std::move(ranks));
    const bool single = text.find_first_of(",-") == std::string::npos;
    return (single ? "rank " : "ranks ") + text;
}

std::string duration_text(Duration duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    if (seconds < 0.0995) return number_text(seconds * 1000, 0) + " ms";
    if (seconds < 9.95) return short_number(seconds) + " s";
    if (seconds < 599.5) return number_text(seconds, 0) + " s";
    if (seconds < 7200) return number_text(seconds / 60, 0) + " min";
    return short_number(seconds / 3600) + " h";
}

std::string size_text(std::int64_t bytes) {
    const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    return short_number(value) + " " + units[unit];
}

std::string counted(std::size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace ddrun::launcher
