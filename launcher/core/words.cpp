#include "launcher/core/words.hpp"

#include <algorithm>
#include <cmath>
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
    const double tenths = std::round(value * 10);
    return number_text(tenths / 10, std::fmod(tenths, 10) == 0 ? 0 : 1);
}

}  // namespace

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
