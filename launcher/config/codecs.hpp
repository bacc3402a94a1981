#pragma once

#include "launcher/config/option.hpp"

#include <array>
#include <utility>

// Ready-made codecs, one per kind of field: `text<&Draft::role>`, `whole<&Draft::max_restarts, 0,
// 9>`.
namespace ddrun::launcher::codecs {

template <auto Field, long Min, long Max>
constexpr Codec whole = {
    [](Draft& draft, std::string_view text) {
        return values::read(text, draft.*Field, values::Bounds{Min, Max});
    },
    [](const Draft& draft) { return std::vector{std::to_string(draft.*Field)}; },
    [] { return "a whole number from " + std::to_string(Min) + " to " + std::to_string(Max); }};

// An optional number; `none` takes it back.
template <auto Field, long Min, long Max>
constexpr Codec whole_or_none = {
    [](Draft& draft, std::string_view text) -> values::Refusal {
        int number = 0;
        if (text != "none") {
            if (auto refusal = values::read(text, number, values::Bounds{Min, Max})) return refusal;
            draft.*Field = number;
        } else {
            (draft.*Field).reset();
        }
        return std::nullopt;
    },
    [](const Draft& draft) {
        return std::vector{draft.*Field ? std::to_string(*(draft.*Field)) : "none"};
    },
    [] {
        return "a whole number from " + std::to_string(Min) + " to " + std::to_string(Max) +
               ", or none";
    }};

template <auto Field>
constexpr Codec on_off = {
    [](Draft& draft, std::string_view text) -> values::Refusal {
        const std::optional<bool> answer = values::yes_or_no(text);
        if (!answer) return values::wrong_form;
        draft.*Field = *answer;
        return std::nullopt;
    },
    [](const Draft& draft) { return std::vector<std::string>{draft.*Field ? "true" : "false"}; },
    [] { return std::string("one of 1, 0, true, false, yes, no, on, off"); }};

// A duration of at least Min nanoseconds.
template <auto Field, long Min = 0>
constexpr Codec duration = {
    [](Draft& draft, std::string_view text) -> values::Refusal {
        Duration value{};
        if (auto refusal = values::read(text, value)) return refusal;
        if (value.count() < Min) return values::wrong_form;
        draft.*Field = value;
        return std::nullopt;
    },
    [](const Draft& draft) { return std::vector{values::write(draft.*Field)}; },
    [] {
        return std::string("a duration ") + (Min > 0 ? "above zero " : "") +
               "such as 500ms, 10s, 5m or 1h (a bare number is seconds)";
    }};

// A watch that is off unless a duration above zero is given.
template <auto Field>
constexpr Codec duration_or_off = {
    [](Draft& draft, std::string_view text) -> values::Refusal {
        if (text == "off") {
            (draft.*Field).reset();
            return std::nullopt;
        }
        Duration value{};
        if (auto refusal = values::read(text, value)) return refusal;
        if (value.count() <= 0) return "0 would end the job at once; to switch it off write off";
        draft.*Field = value;
        return std::nullopt;
    },
    [](const Draft& draft) {
        return std::vector{draft.*Field ? values::write(*(draft.*Field)) : "off"};
    },
    [] {
        return std::string("a duration such as 30s, 5m or 1h (a bare number is seconds), or off");
    }};

// Visible text, or an optional one.
[[nodiscard]] values::Refusal check_label(std::string_view text);
template <auto Field>
constexpr Codec label = {
    [](Draft& draft, std::string_view text) {
        auto refusal = check_label(text);
        if (!refusal) draft.*Field = std::string(text);
        return refusal;
    },
    [](const Draft& draft) { return std::vector{draft.*Field}; },
    [] { return std::string("1 to 255 characters without control characters"); }};

template <auto Field>
constexpr Codec optional_text = {[](Draft& draft, std::string_view text) -> values::Refusal {
                                     draft.*Field = std::string(text);
                                     return std::nullopt;
                                 },
                                 [](const Draft& draft) {
                                     return draft.*Field ? std::vector{*(draft.*Field)}
                                                         : std::vector<std::string>();
                                 },
                                 [] { return std::string("a path"); }};

// Anything values::read and values::write know; empty text means not set.
template <auto Field>
constexpr Codec value = {
    [](Draft& draft, std::string_view text) { return values::read(text, draft.*Field); },
    [](const Draft& draft) {
        std::string text = values::write(draft.*Field);
        return text.empty() ? std::vector<std::string>() : std::vector{std::move(text)};
    },
    nullptr};

// One of a set of words, in the order of the enumerators.
template <auto Field, const auto& Words>
constexpr Codec word = {
    [](Draft& draft, std::string_view text) -> values::Refusal {
        for (std::size_t i = 0; i < Words.size(); ++i) {
            if (text != Words[i]) continue;
            draft.*Field = static_cast<std::remove_reference_t<decltype(draft.*Field)>>(i);
            return std::nullopt;
        }
        return values::wrong_form;
    },
    [](const Draft& draft) {
        return std::vector{std::string(Words[static_cast<std::size_t>(draft.*Field)])};
    },
    [] {
        std::string text = "one of";
        for (std::size_t i = 0; i < Words.size(); ++i) {
            text.append(i == 0 ? " " : ", ").append(Words[i]);
        }
        return text;
    }};

// A list of texts.
template <auto Field>
constexpr Codec texts = {
    [](Draft& draft, std::string_view text) -> values::Refusal {
        std::vector<std::string> items = values::split_list(text);
        for (const std::string& item : items) {
            if (item.empty()) return "an item is empty";
        }
        draft.*Field = std::move(items);
        return std::nullopt;
    },
    [](const Draft& draft) {
        return (draft.*Field).empty() ? std::vector<std::string>()
                                      : std::vector{values::join_list(draft.*Field)};
    },
    [] { return std::string("texts separated by commas (a doubled comma is a comma)"); }};

}  // namespace ddrun::launcher::codecs
