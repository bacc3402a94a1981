#include "launcher/core/termination_text.hpp"

#include "launcher/core/words.hpp"

#include <string_view>

namespace ddrun::launcher {
namespace {

constexpr std::string_view prefix = "ddrun: ";
// Leaves room for the exit code behind it.
constexpr std::size_t longest_line = 1000;

std::string without_prefix(std::string line) {
    if (line.starts_with(prefix)) line.erase(0, prefix.size());
    return line;
}

// Bytes 10xxxxxx continue a character: a cut before one would split it.
std::string shortened(std::string line) {
    if (line.size() <= longest_line) return line;
    std::size_t end = longest_line;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
    return line.substr(0, end);
}

}  // namespace

std::string termination_text(const std::string& summary, int exit_code) {
    std::string text;
    for (const std::string& line : lines_of(summary)) {
        const bool first = text.empty();
        const std::string words = shortened(without_prefix(line)) + "\n";
        if (text.size() + words.size() > largest_termination_text) break;
        text += words;
        if (first) text += "exit code " + std::to_string(exit_code) + "\n";
    }
    return text;
}

}  // namespace ddrun::launcher
