#include "launcher/keeper/messages.hpp"

#include "rendezvous/protocol/bytes.hpp"

#include <concepts>
#include <map>
#include <tuple>

namespace ddrun::launcher::keeper {
namespace {

using rendezvous::ByteReader;
using rendezvous::ByteWriter;

// --- fields of each message, in wire order, for reading and writing alike -----------------------
template <typename Message, typename Wanted>
concept Is = std::same_as<std::remove_const_t<Message>, Wanted>;

auto fields(Is<Spawn> auto& m) {
    auto& plan = m.plan;
    return std::tie(m.round, m.strict_binding, plan.rank, plan.local_rank, plan.argv,
                    plan.environment, plan.cpus, plan.memory_node, plan.owns_stdin);
}
auto fields(Is<Signal> auto& m) {
    return std::tie(m.round, m.signal, m.local_ranks, m.whole_group);
}
auto fields(Is<KillRound> auto& m) {
    return std::tie(m.round, m.helper_grace_ms);
}
auto fields(Is<CleanUp> auto& m) {
    return std::tie(m.round, m.local_rank);
}
auto fields(Is<Inspect> auto& m) {
    return std::tie(m.round, m.local_rank);
}
auto fields(Is<Suspend> auto& m) {
    return std::tie(m.stop);
}
auto fields(Is<Lease> auto& m) {
    return std::tie(m.until_ns, m.grace_ns);
}
auto fields(Is<LastWords> auto& m) {
    return std::tie(m.address, m.bytes);
}
auto fields(Is<Remove> auto& m) {
    return std::tie(m.paths);
}
auto fields(Is<Quit> auto&) {
    return std::tie();
}

auto fields(Is<Spawned> auto& m) {
    return std::tie(m.round, m.local_rank, m.pid, m.refused_binding);
}
auto fields(Is<NotSpawned> auto& m) {
    return std::tie(m.round, m.local_rank, m.error_number, m.stage, m.path);
}
auto fields(Is<Exited> auto& m) {
    return std::tie(m.round, m.local_rank, m.pid, m.wait_status, m.at_ns, m.max_rss_kib);
}
auto fields(Is<StoppedOrContinued> auto& m) {
    return std::tie(m.round, m.local_rank, m.stopped);
}
auto fields(Is<LeftBehind> auto& m) {
    return std::tie(m.round, m.local_rank, m.processes);
}
auto fields(Is<RoundClear> auto& m) {
    return std::tie(m.round);
}
auto fields(Is<Stuck> auto& m) {
    return std::tie(m.round, m.pid, m.local_rank, m.command, m.held_by);
}
auto fields(Is<Inspected> auto& m) {
    return std::tie(m.round, m.local_rank, m.words);
}
auto fields(Is<Suspended> auto&) {
    return std::tie();
}

// --- one value, written -------------------------------------------------------------------------
void write(ByteWriter& out, bool value) {
    out.boolean(value);
}
template <std::integral T>
void write(ByteWriter& out, T value) {
    out.number(value);
}
void write(ByteWriter& out, const std::string& text) {
    out.string(text);
}
template <typename First, typename Second>
void write(ByteWriter& out, const std::pair<First, Second>& pair) {
    write(out, pair.first);
    write(out, pair.second);
}
void write(ByteWriter& out, const std::optional<int>& value) {
    write(out, value.has_value());
    write(out, value.value_or(0));
}
template <typename Container>
requires requires(const Container& c) {
    c.begin();
}
void write(ByteWriter& out, const Container& list) {
    out.number(static_cast<std::uint32_t>(list.size()));
    for (const auto& item : list) write(out, item);
}

// --- one value, read ----------------------------------------------------------------------------
void read(ByteReader& in, bool& value) {
    value = in.boolean();
}
template <std::integral T>
void read(ByteReader& in, T& value) {
    value = in.number<T>();
}
void read(ByteReader& in, std::string& text) {
    text = in.string();
}
template <typename First, typename Second>
void read(ByteReader& in, std::pair<First, Second>& pair) {
    read(in, pair.first);
    read(in, pair.second);
}
void read(ByteReader& in, std::optional<int>& value) {
    const bool present = in.boolean();
    const int number = in.number<int>();
    if (present) value = number;
}
template <typename Item>
void read(ByteReader& in, std::vector<Item>& list) {
    const std::size_t items = in.count(rendezvous::length_bytes);
    list.reserve(items);
    for (std::size_t i = 0; i < items && !in.failed(); ++i) read(in, list.emplace_back());
}
void read(ByteReader& in, Variables& variables) {
    std::vector<std::pair<std::string, std::string>> list;
    read(in, list);
    for (auto& [name, value] : list) variables.insert_or_assign(std::move(name), std::move(value));
}

// --- whole messages -----------------------------------------------------------------------------
// The type byte is the message's place in its variant.
template <typename Variant>
std::string encode_frame(const Variant& message) {
    ByteWriter out;
    out.number(static_cast<std::uint8_t>(message.index()));
    std::visit(
        [&](const auto& m) {
            std::apply([&](const auto&... field) { (write(out, field), ...); }, fields(m));
        },
        message);
    return std::move(out).take_frame();
}

template <typename Variant, std::size_t index = 0>
std::optional<Variant> decode_body(std::uint8_t type, ByteReader& in) {
    if constexpr (index == std::variant_size_v<Variant>) {
        return std::nullopt;
    } else {
        if (type != index) return decode_body<Variant, index + 1>(type, in);
        std::variant_alternative_t<index, Variant> message;
        std::apply([&](auto&... field) { (read(in, field), ...); }, fields(message));
        if (!in.complete()) return std::nullopt;
        return std::optional<Variant>(std::in_place, std::in_place_index<index>,
                                      std::move(message));
    }
}

template <typename Variant>
std::optional<Variant> decode_frame(std::string_view body) {
    ByteReader in(body);
    const auto type = in.number<std::uint8_t>();
    if (in.failed()) return std::nullopt;
    return decode_body<Variant>(type, in);
}

}  // namespace

std::string encode(const ToKeeper& message) {
    return encode_frame(message);
}
std::string encode(const FromKeeper& message) {
    return encode_frame(message);
}
std::optional<ToKeeper> decode_to_keeper(std::string_view body) {
    return decode_frame<ToKeeper>(body);
}
std::optional<FromKeeper> decode_from_keeper(std::string_view body) {
    return decode_frame<FromKeeper>(body);
}

}  // namespace ddrun::launcher::keeper
