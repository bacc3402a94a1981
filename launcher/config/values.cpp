#include "launcher/config/values.hpp"

#include "rendezvous/protocol/exit_status.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

namespace ddrun::launcher::values {
namespace {

struct Unit {
    std::string_view suffix;
    std::int64_t nanoseconds;
};
// Largest first, so that writing finds the shortest text; "ms" before the bare "m" and "s" for
// reading.
constexpr std::array<Unit, 4> units = {
    {{"h", 3'600'000'000'000}, {"ms", 1'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000}}};
constexpr auto longest_duration = std::chrono::hours(24 * 365);
constexpr std::size_t most_digits = 9;  // of a duration, before and after the point

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t number_of(std::string_view digits) {
    std::int64_t value = 0;
    for (const char digit : digits) value = value * 10 + (digit - '0');
    return value;
}

Unit take_unit(std::string_view& text) {
    for (const Unit& unit : units) {
        if (text.ends_with(unit.suffix)) {
            text.remove_suffix(unit.suffix.size());
            return unit;
        }
    }
    return units[3];
}

bool is_signal_that_can_be_handled(int signal) {
    constexpr std::array<int, 9> choices = {1, 2, 3, 10, 12, 14, 15, 24, 30};
    return std::find(choices.begin(), choices.end(), signal) != choices.end();
}

void append_visible(std::string& text, unsigned char byte) {
    constexpr std::string_view hex = "0123456789abcdef";
    if (byte >= 0x20 && byte != 0x7f && byte < 0x80) {
        text += static_cast<char>(byte);
    } else {
        text.append("\\x").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
    }
}

}  // namespace

Refusal read(std::string_view text, int& value, Bounds bounds) {
    long number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return wrong_form;
    if (number < bounds.min || number > bounds.max) return wrong_form;
    value = static_cast<int>(number);
    return std::nullopt;
}

std::optional<bool> yes_or_no(std::string_view text) {
    std::string word(text);
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
    if (word == "0" || word == "false" || word == "no" || word == "off") return false;
    return std::nullopt;
}

Refusal read(std::string_view text, Duration& value) {
    const Unit unit = take_unit(text);
    const std::size_t point = text.find('.');
    const std::string_view whole = text.substr(0, point);
    const std::string_view part =
        point == text.npos ? std::string_view("0") : text.substr(point + 1);
    if (!all_digits(whole) || !all_digits(part)) return wrong_form;
    if (whole.size() > most_digits || part.size() > most_digits) return wrong_form;
    std::int64_t scale = 1;
    for (std::size_t i = 0; i < part.size(); ++i) scale *= 10;
    if (number_of(whole) > Duration(longest_duration).count() / unit.nanoseconds) {
        return "the longest is 8760h";
    }
    // Split, so that nine decimals of an hour do not overflow.
    const std::int64_t decimals = number_of(part);
    const std::int64_t fraction =
        decimals * (unit.nanoseconds / 1'000'000) / scale * 1'000'000 +
        decimals * (unit.nanoseconds / 1'000'000) % scale * 1'000'000 / scale;
    value = Duration(number_of(whole) * unit.nanoseconds + fraction);
    return std::nullopt;
}

std::string write(Duration value) {
    const std::int64_t count = value.count();
    for (const std::string_view suffix : {"h", "m", "s", "ms"}) {
        const auto unit = std::find_if(units.begin(), units.end(),
                                       [&](const Unit& u) { return u.suffix == suffix; });
        if (count % unit->nanoseconds == 0 && (count != 0 || suffix == "s")) {
            return std::to_string(count / unit->nanoseconds).append(suffix);
        }
    }
    std::string decimals = std::to_string(1'000'000'000 + count % 1'000'000'000).substr(1);
    return std::to_string(count / 1'000'000'000) + "." + decimals + "s";
}

Refusal read_signals(std::string_view text, std::vector<int>& value) {
    std::vector<int> signals;
    for (const std::string& name : split_list(text)) {
        const int signal = signal_number(name);
        if (signal == 0) return "there is no signal " + quoted(name);
        if (!is_signal_that_can_be_handled(signal)) {
            return signal_name(signal) + " cannot be a request to stop";
        }
        if (std::find(signals.begin(), signals.end(), signal) == signals.end()) {
            signals.push_back(signal);
        }
    }
    value = std::move(signals);
    return std::nullopt;
}

std::string write_signals(const std::vector<int>& value) {
    std::string text;
    for (const int signal : value) text.append(text.empty() ? "" : ",").append(signal_name(signal));
    return text;
}

std::vector<std::string> split_list(std::string_view text) {
    std::vector<std::string> items(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != ',') {
            items.back() += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == ',') {
            items.back() += ',';
            ++i;
        } else {
            items.emplace_back();
        }
    }
    return items;
}

std::string join_list(const std::vector<std::string>& items) {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) text += ',';
        for (const char c : items[i]) text.append(c == ',' ? 2 : 1, c);
    }
    return text;
}

std::string quoted(std::string_view text) {
    constexpr std::size_t longest_shown = 80;
    std::string shown = "'";
    for (const char c : text.substr(0, longest_shown)) {
        append_visible(shown, static_cast<unsigned char>(c));
    }
    return shown.append(text.size() > longest_shown ? "...'" : "'");
}

std::string shell_quoted(std::string_view word) {
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-@%";
    if (!word.empty() && word.find_first_not_of(safe) == word.npos) return std::string(word);
    std::string text = "'";
    for (const char c : word) {
        if (c == '\'') {
            text += "'\\''";
        } else {
            text += c;
        }
    }
    return text + "'";
}

}  // namespace ddrun::launcher::values
