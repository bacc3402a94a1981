#pragma once

#include "rendezvous/protocol/message_fields.hpp"
#include "rendezvous/protocol/node_layout.hpp"
#include "tests/support/seeds.hpp"

#include <concepts>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

// Any message of either protocol, with random fields.
namespace ddrun::testing {

template <rendezvous::HasLayout Message>
void roll(Dice& dice, Message& message);
template <typename... Messages>
void roll(Dice& dice, std::variant<Messages...>& message);

void roll(Dice& dice, std::integral auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(dice.bits());
}
inline void roll(Dice& dice, bool& value) {
    value = dice.one_in(2);
}
inline void roll(Dice& dice, Duration& value) {
    value = Duration(static_cast<std::int64_t>(dice.bits()));
}
template <typename Enum>
requires std::is_enum_v<Enum>
void roll(Dice& dice, Enum& value) {
    value = static_cast<Enum>(dice.between(0, static_cast<int>(rendezvous::LastOf<Enum>::value)));
}
inline void roll(Dice& dice, std::string& text) {
    text = dice.bytes(40);
}
template <typename Item>
void roll(Dice& dice, std::vector<Item>& list) {
    list.resize(static_cast<std::size_t>(dice.between(0, 5)));
    for (Item& item : list) roll(dice, item);
}
inline void roll(Dice& dice, rendezvous::SharedValues& values) {
    rendezvous::SharedValues::List list;
    roll(dice, list);
    values = rendezvous::SharedValues(std::move(list));
}
template <typename Value>
void roll(Dice& dice, std::optional<Value>& value) {
    if (dice.one_in(2)) roll(dice, value.emplace());
}

template <typename Message, typename Value>
void roll_field(Dice& dice, Message& message, Value Message::*field) {
    roll(dice, message.*field);
}
template <typename Message>
void roll_field(Dice& dice, Message& message, rendezvous::LimitedText auto text) {
    roll(dice, message.*text.field);
}

template <rendezvous::HasLayout Message>
void roll(Dice& dice, Message& message) {
    std::apply([&](auto... field) { (roll_field(dice, message, field), ...); },
               rendezvous::Layout<Message>::fields);
}
template <std::size_t Index = 0, typename... Messages>
void roll_alternative(Dice& dice, std::variant<Messages...>& message, std::size_t chosen) {
    if (chosen == Index) {
        roll(dice, message.template emplace<Index>());
    } else if constexpr (Index + 1 < sizeof...(Messages)) {
        roll_alternative<Index + 1>(dice, message, chosen);
    }
}
template <typename... Messages>
void roll(Dice& dice, std::variant<Messages...>& message) {
    roll_alternative(dice, message,
                     static_cast<std::size_t>(dice.between(0, sizeof...(Messages) - 1)));
}

}  // namespace ddrun::testing
