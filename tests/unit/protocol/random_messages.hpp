#pragma once

#include "rendezvous/protocol/message_layout.hpp"
#include "tests/support/seeds.hpp"

#include <concepts>
#include <tuple>

// Any message of the worker protocol, with random fields.
namespace ddrun::testing {

void roll(Dice& dice, std::integral auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(dice.bits());
}
inline void roll(Dice& dice, std::string& text) {
    text = dice.bytes(40);
}
inline void roll(Dice& dice, std::vector<std::string>& list) {
    list.resize(static_cast<std::size_t>(dice.between(0, 5)));
    for (std::string& item : list) roll(dice, item);
}
inline void roll(Dice& dice, rendezvous::StoreError& error) {
    error = static_cast<rendezvous::StoreError>(
        dice.between(0, static_cast<int>(rendezvous::StoreError::mismatch)));
}

template <typename Message, typename Value>
void fill_field(Dice& dice, Message& message, Value Message::*field) {
    roll(dice, message.*field);
}
template <typename Message>
void fill_field(Dice& dice, Message& message, rendezvous::Words<Message> words) {
    roll(dice, message.*words.field);
}

template <typename Message>
void fill(Dice& dice, Message& message) {
    std::apply([&](auto... field) { (fill_field(dice, message, field), ...); },
               rendezvous::Layout<Message>::fields);
}

}  // namespace ddrun::testing
