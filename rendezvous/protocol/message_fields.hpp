#pragma once

#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/message_layout.hpp"
#include "rendezvous/protocol/time.hpp"

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Fields to bytes and back, driven by Layout: how one value of each kind is written and read. For
// the codecs; a message inside a message is its type and its fields, a variant is its alternative.
namespace ddrun::rendezvous {

// The highest enumerator of an enum that travels as u8; LastOf<Enum>::value.
template <typename Enum>
struct LastOf;
template <>
struct LastOf<StoreError> {
    static constexpr auto value = StoreError::mismatch;
};

template <typename Field>
concept LimitedText = requires {
    Field::limit;
};
template <typename T>
concept HasLayout = requires {
    Layout<T>::fields;
};
template <typename T>
concept HasType = requires {
    Layout<T>::type;
};

// Values made of values, declared first because they hold each other.
template <HasLayout T>
void write(ByteWriter& out, const T& value);
template <HasLayout T>
void read(ByteReader& in, T& value);
template <typename... Messages>
void write(ByteWriter& out, const std::variant<Messages...>& message);
template <typename... Messages>
void read(ByteReader& in, std::variant<Messages...>& message);

// --- one value, written -------------------------------------------------------------------------
void write(ByteWriter& out, std::integral auto value) {
    out.number(value);
}
inline void write(ByteWriter& out, bool value) {
    out.boolean(value);
}
inline void write(ByteWriter& out, Duration value) {
    out.number(std::int64_t{value.count()});
}
template <typename Enum>
requires std::is_enum_v<Enum>
void write(ByteWriter& out, Enum value) {
    out.number(static_cast<std::uint8_t>(value));
}
inline void write(ByteWriter& out, const std::string& text) {
    out.string(text);
}
template <typename Item>
void write(ByteWriter& out, const std::vector<Item>& list) {
    out.number(static_cast<std::uint32_t>(list.size()));
    for (const Item& item : list) write(out, item);
}
inline void write(ByteWriter& out, const SharedValues& values) {
    write(out, values.list());
}
template <typename Value>
void write(ByteWriter& out, const std::optional<Value>& value) {
    out.boolean(value.has_value());
    if (value) write(out, *value);
}

template <typename Message, typename Value>
void write_field(ByteWriter& out, const Message& message, Value Message::*field) {
    write(out, message.*field);
}
template <typename Message>
void write_field(ByteWriter& out, const Message& message, LimitedText auto text) {
    out.string(std::string_view(message.*text.field).substr(0, text.limit));
}

template <HasLayout T>
void write(ByteWriter& out, const T& value) {
    std::apply([&](auto... field) { (write_field(out, value, field), ...); }, Layout<T>::fields);
}
template <typename Message>
void write_alternative(ByteWriter& out, const Message& message) {
    if constexpr (HasType<Message>) out.number(Layout<Message>::type);  // else: a variant itself
    write(out, message);
}
template <typename... Messages>
void write(ByteWriter& out, const std::variant<Messages...>& message) {
    std::visit([&](const auto& one) { write_alternative(out, one); }, message);
}

// --- one value, read ----------------------------------------------------------------------------
template <std::integral T>
void read(ByteReader& in, T& value) {
    value = in.number<T>();
}
inline void read(ByteReader& in, bool& value) {
    value = in.boolean();
}
inline void read(ByteReader& in, Duration& value) {
    value = Duration(in.number<std::int64_t>());
}
template <typename Enum>
requires std::is_enum_v<Enum>
void read(ByteReader& in, Enum& value) {
    const auto number = in.number<std::uint8_t>();
    if (number > static_cast<std::uint8_t>(LastOf<Enum>::value)) return in.fail();
    value = static_cast<Enum>(number);
}
inline void read(ByteReader& in, std::string& text) {
    text = in.string();
}
// Every item takes a byte at least, and the list grows as items are read: a count promises nothing.
template <typename Item>
void read(ByteReader& in, std::vector<Item>& list) {
    const std::size_t items = in.count(1);
    if (items > max_list_items) return in.fail();
    for (std::size_t i = 0; i < items && !in.failed(); ++i) read(in, list.emplace_back());
}
inline void read(ByteReader& in, SharedValues& values) {
    SharedValues::List list;
    read(in, list);
    values = SharedValues(std::move(list));
}
template <typename Value>
void read(ByteReader& in, std::optional<Value>& value) {
    if (in.boolean()) read(in, value.emplace());
}

template <typename Message, typename Value>
void read_field(ByteReader& in, Message& message, Value Message::*field) {
    read(in, message.*field);
}
template <typename Message>
void read_field(ByteReader& in, Message& message, LimitedText auto text) {
    message.*text.field = in.string(text.limit);
}

template <HasLayout T>
void read(ByteReader& in, T& value) {
    std::apply([&](auto... field) { (read_field(in, value, field), ...); }, Layout<T>::fields);
}

// Puts the alternative of that type number into `message`, looking into variants of variants.
template <typename Variant>
struct Alternatives;
template <typename... Messages>
struct Alternatives<std::variant<Messages...>> {
    template <typename Target>
    static bool read_into(std::uint8_t type, ByteReader& in, Target& target) {
        return (read_one<Messages>(type, in, target) || ...);
    }

  private:
    template <typename Message, typename Target>
    static bool read_one(std::uint8_t type, ByteReader& in, Target& target) {
        if constexpr (HasType<Message>) {
            if (type != Layout<Message>::type) return false;
            read(in, target.template emplace<Message>());
            return true;
        } else {
            Message inner;
            if (!Alternatives<Message>::read_into(type, in, inner)) return false;
            target = std::move(inner);
            return true;
        }
    }
};
template <typename... Messages>
void read(ByteReader& in, std::variant<Messages...>& message) {
    const auto type = in.number<std::uint8_t>();
    if (!Alternatives<std::variant<Messages...>>::read_into(type, in, message)) in.fail();
}

// --- whole frames -------------------------------------------------------------------------------
template <typename Variant>
void append_frame(std::string& bytes, const Variant& message) {
    ByteWriter out(std::move(bytes));
    const std::size_t begin = out.begin_frame();
    write(out, message);
    out.end_frame(begin);
    bytes = out.take();
}
template <typename Variant>
std::string encode_frame(const Variant& message) {
    std::string bytes;
    append_frame(bytes, message);
    return bytes;
}
template <typename Variant>
std::optional<Variant> decode_frame(std::string_view frame) {
    ByteReader in(frame);
    std::optional<Variant> message(std::in_place);
    read(in, *message);
    if (!in.complete()) message.reset();
    return message;
}

}  // namespace ddrun::rendezvous
