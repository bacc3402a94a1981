#include "rendezvous/protocol/codec.hpp"

#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/message_layout.hpp"

#include <concepts>
#include <tuple>
#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr StoreError last_store_error = StoreError::mismatch;

// --- one field, written -------------------------------------------------------------------------
void write(ByteWriter& out, std::integral auto value) {
    out.number(value);
}
void write(ByteWriter& out, StoreError error) {
    out.number(static_cast<std::uint8_t>(error));
}
void write(ByteWriter& out, const std::string& text) {
    out.string(text);
}
void write(ByteWriter& out, const std::vector<std::string>& list) {
    out.number(static_cast<std::uint32_t>(list.size()));
    for (const std::string& item : list) out.string(item);
}

template <typename Message, typename Value>
void write_field(ByteWriter& out, const Message& message, Value Message::*field) {
    write(out, message.*field);
}
template <typename Message>
void write_field(ByteWriter& out, const Message& message, Words<Message> words) {
    out.string(std::string_view(message.*words.field).substr(0, max_words_bytes));
}

// --- one field, read ----------------------------------------------------------------------------
template <std::integral T>
void read(ByteReader& in, T& value) {
    value = in.number<T>();
}
void read(ByteReader& in, StoreError& error) {
    const auto number = in.number<std::uint8_t>();
    if (number > static_cast<std::uint8_t>(last_store_error)) return in.fail();
    error = static_cast<StoreError>(number);
}
void read(ByteReader& in, std::string& text) {
    text = in.string();
}
void read(ByteReader& in, std::vector<std::string>& list) {
    const std::size_t items = in.count(length_bytes);
    if (items > max_list_items) return in.fail();
    list.reserve(items);
    for (std::size_t i = 0; i < items && !in.failed(); ++i) list.push_back(in.string());
}

template <typename Message, typename Value>
void read_field(ByteReader& in, Message& message, Value Message::*field) {
    read(in, message.*field);
}
template <typename Message>
void read_field(ByteReader& in, Message& message, Words<Message> words) {
    message.*words.field = in.string(max_words_bytes);
}

// --- whole messages -----------------------------------------------------------------------------
template <typename Message>
void write_message(ByteWriter& out, const Message& message) {
    out.number(Layout<Message>::type);
    std::apply([&](auto... field) { (write_field(out, message, field), ...); },
               Layout<Message>::fields);
}

template <typename Message>
Message read_message(ByteReader& in) {
    Message message;
    std::apply([&](auto... field) { (read_field(in, message, field), ...); },
               Layout<Message>::fields);
    return message;
}

template <typename... Messages>
std::string encode_any(const std::variant<Messages...>& message) {
    ByteWriter out;
    std::visit([&](const auto& one) { write_message(out, one); }, message);
    return out.take_frame();
}

template <typename Variant, typename Message>
bool read_if(std::uint8_t type, ByteReader& in, std::optional<Variant>& result) {
    if (type != Layout<Message>::type) return false;
    result = read_message<Message>(in);
    return true;
}

template <typename... Messages>
void decode_any(std::string_view frame, std::optional<std::variant<Messages...>>& result) {
    ByteReader in(frame);
    const auto type = in.number<std::uint8_t>();
    const bool known = (read_if<std::variant<Messages...>, Messages>(type, in, result) || ...);
    if (!known || !in.complete()) result.reset();
}

}  // namespace

std::string encode(const FromWorker& message) {
    return encode_any(message);
}
std::string encode(const ToWorker& message) {
    return encode_any(message);
}

std::optional<FromWorker> decode_from_worker(std::string_view frame) {
    std::optional<FromWorker> result;
    decode_any(frame, result);
    return result;
}

std::optional<ToWorker> decode_to_worker(std::string_view frame) {
    std::optional<ToWorker> result;
    decode_any(frame, result);
    return result;
}

}  // namespace ddrun::rendezvous
