#include "launcher/environment/host_list.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace ddrun::launcher {
namespace {

using Texts = std::vector<std::string>;

// One name as written: literal, numbers, literal, numbers ...
struct Pattern {
    Texts literals;  // literals[i] stands before brackets[i]
    std::vector<Texts> brackets;
};

struct Problem {
    std::string words;
};

[[noreturn]] void refuse(std::string_view part, const char* why) {
    throw Problem{"'" + std::string(part) + "' in the host list " + why};
}

bool separates(char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

bool is_number(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::uint64_t number_of(std::string_view text, std::string_view range) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!is_number(text) || error != std::errc{} || end != text.data() + text.size()) {
        refuse(range, "is no range of numbers");
    }
    return value;
}

void add_range(std::string_view range, Texts& numbers) {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const std::uint64_t first = number_of(low, range);
    const std::uint64_t last = number_of(high, range);
    if (last < first) refuse(range, "ends before it begins");
    if (last - first >= max_hosts_in_list) refuse(range, "has too many hosts");
    for (std::uint64_t offset = 0; offset <= last - first; ++offset) {
        std::string number = std::to_string(first + offset);
        if (number.size() < low.size()) number.insert(0, low.size() - number.size(), '0');
        numbers.push_back(std::move(number));
        if (numbers.size() > max_hosts_in_list) refuse(range, "has too many hosts");
    }
}

// What stands between '[' and ']'.
Texts numbers_of(std::string_view list) {
    Texts numbers;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        add_range(list.substr(at, comma - at), numbers);
        at = comma + 1;
    }
    return numbers;
}

Pattern pattern_of(std::string_view name) {
    Pattern pattern;
    std::string_view rest = name;
    for (std::size_t open = 0; (open = rest.find('[')) != std::string_view::npos;) {
        const std::size_t close = rest.find(']', open);
        if (close == std::string_view::npos) refuse(name, "has a bracket that does not end");
        const std::string_view list = rest.substr(open + 1, close - open - 1);
        if (list.find('[') != std::string_view::npos) refuse(name, "has a bracket in a bracket");
        const std::string_view literal = rest.substr(0, open);
        if (literal.find(']') != std::string_view::npos) {
            refuse(name, "has a bracket that does not begin");
        }
        pattern.literals.emplace_back(literal);
        pattern.brackets.push_back(numbers_of(list));
        rest.remove_prefix(close + 1);
    }
    if (!pattern.brackets.empty() && !rest.empty()) refuse(name, "goes on after its last bracket");
    pattern.literals.emplace_back(rest);
    return pattern;
}

std::size_t count_of(const Pattern& pattern, std::string_view name) {
    std::size_t count = 1;
    for (const Texts& bracket : pattern.brackets) {
        count *= bracket.size();
        if (count > max_hosts_in_list) refuse(name, "has too many hosts");
    }
    return count;
}

// An odometer whose fastest wheel is the last bracket, then the first, the second ...
bool advance(const Pattern& pattern, std::vector<std::size_t>& wheels) {
    const std::size_t brackets = wheels.size();
    for (std::size_t turn = 0; turn < brackets; ++turn) {
        const std::size_t wheel = turn == 0 ? brackets - 1 : turn - 1;
        if (++wheels[wheel] < pattern.brackets[wheel].size()) return true;
        wheels[wheel] = 0;
    }
    return false;
}

void expand(std::string_view name, Texts& hosts) {
    const Pattern pattern = pattern_of(name);
    if (hosts.size() + count_of(pattern, name) > max_hosts_in_list) {
        refuse(name, "is one host too many");
    }
    std::vector<std::size_t> wheels(pattern.brackets.size(), 0);
    do {
        std::string host;
        for (std::size_t i = 0; i < wheels.size(); ++i) {
            host += pattern.literals[i] + pattern.brackets[i][wheels[i]];
        }
        hosts.push_back(host + pattern.literals.back());
    } while (advance(pattern, wheels));
}

// Up to the next separator outside brackets.
std::string_view take_name(std::string_view& text) {
    bool inside = false;
    std::size_t end = 0;
    for (; end < text.size(); ++end) {
        if (text[end] == '[') inside = true;
        if (text[end] == ']') inside = false;
        if (!inside && separates(text[end])) break;
    }
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return name;
}

}  // namespace

HostList expand_host_list(std::string_view text) {
    HostList list;
    try {
        while (!text.empty()) {
            const std::string_view name = take_name(text);
            if (!name.empty()) expand(name, list.hosts);
        }
    } catch (const Problem& problem) {
        return {{}, problem.words};
    }
    return list;
}

}  // namespace ddrun::launcher
