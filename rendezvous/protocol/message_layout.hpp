#pragma once

#include "rendezvous/protocol/worker_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

// Type number and fields of every message between worker and agent, in wire order: the one place
// that PROTOCOL.md describes. A number, once given, is never used for anything else.
namespace ddrun::rendezvous {

// Text for people: cut to max_words_bytes when written, refused when longer.
template <typename Message>
struct Words {
    static constexpr std::size_t limit = max_words_bytes;
    std::string Message::*field;
};
template <typename Message>
Words(std::string Message::*) -> Words<Message>;

// Names, addresses and ids: the same with max_name_bytes.
template <typename Message>
struct Name {
    static constexpr std::size_t limit = max_name_bytes;
    std::string Message::*field;
};
template <typename Message>
Name(std::string Message::*) -> Name<Message>;

template <typename Message>
struct Layout;

// --- worker to agent: 1 to 63 -------------------------------------------------------------------
template <>
struct Layout<WorkerHello> {
    static constexpr std::uint8_t type = 1;
    static constexpr auto fields =
        std::tuple(&WorkerHello::version, &WorkerHello::round, &WorkerHello::rank);
};
template <>
struct Layout<StoreSet> {
    static constexpr std::uint8_t type = 2;
    static constexpr auto fields = std::tuple(&StoreSet::id, &StoreSet::key, &StoreSet::value);
};
template <>
struct Layout<StoreGet> {
    static constexpr std::uint8_t type = 3;
    static constexpr auto fields = std::tuple(&StoreGet::id, &StoreGet::key, &StoreGet::timeout_ms);
};
template <>
struct Layout<StoreAdd> {
    static constexpr std::uint8_t type = 4;
    static constexpr auto fields = std::tuple(&StoreAdd::id, &StoreAdd::key, &StoreAdd::delta);
};
template <>
struct Layout<StoreCompareSet> {
    static constexpr std::uint8_t type = 5;
    static constexpr auto fields =
        std::tuple(&StoreCompareSet::id, &StoreCompareSet::key, &StoreCompareSet::expected,
                   &StoreCompareSet::desired);
};
template <>
struct Layout<StoreDelete> {
    static constexpr std::uint8_t type = 6;
    static constexpr auto fields = std::tuple(&StoreDelete::id, &StoreDelete::key);
};
template <>
struct Layout<StoreMultiGet> {
    static constexpr std::uint8_t type = 7;
    static constexpr auto fields =
        std::tuple(&StoreMultiGet::id, &StoreMultiGet::keys, &StoreMultiGet::timeout_ms);
};
template <>
struct Layout<StoreBarrier> {
    static constexpr std::uint8_t type = 8;
    static constexpr auto fields = std::tuple(&StoreBarrier::id, &StoreBarrier::name,
                                              &StoreBarrier::size, &StoreBarrier::timeout_ms);
};
template <>
struct Layout<StoreAllGather> {
    static constexpr std::uint8_t type = 9;
    static constexpr auto fields =
        std::tuple(&StoreAllGather::id, &StoreAllGather::name, &StoreAllGather::size,
                   &StoreAllGather::value, &StoreAllGather::timeout_ms);
};
template <>
struct Layout<ArenaOpen> {
    static constexpr std::uint8_t type = 10;
    static constexpr auto fields = std::tuple(&ArenaOpen::id, &ArenaOpen::name, &ArenaOpen::bytes);
};
template <>
struct Layout<Progress> {
    static constexpr std::uint8_t type = 11;
    static constexpr auto fields = std::tuple(&Progress::step);
};
template <>
struct Layout<AbortedBecause> {
    static constexpr std::uint8_t type = 12;
    static constexpr auto fields = std::tuple(&AbortedBecause::rank, Words{&AbortedBecause::words});
};
template <>
struct Layout<NeverRetry> {
    static constexpr std::uint8_t type = 13;
    static constexpr auto fields = std::tuple(Words{&NeverRetry::words});
};

// --- agent to worker: 64 to 127 -----------------------------------------------------------------
template <>
struct Layout<Welcome> {
    static constexpr std::uint8_t type = 64;
    static constexpr auto fields = std::tuple(&Welcome::version);
};
template <>
struct Layout<Refused> {
    static constexpr std::uint8_t type = 65;
    static constexpr auto fields = std::tuple(Words{&Refused::words});
};
template <>
struct Layout<StoreDone> {
    static constexpr std::uint8_t type = 66;
    static constexpr auto fields = std::tuple(&StoreDone::id);
};
template <>
struct Layout<StoreValue> {
    static constexpr std::uint8_t type = 67;
    static constexpr auto fields = std::tuple(&StoreValue::id, &StoreValue::value);
};
template <>
struct Layout<StoreNumber> {
    static constexpr std::uint8_t type = 68;
    static constexpr auto fields = std::tuple(&StoreNumber::id, &StoreNumber::value);
};
template <>
struct Layout<StoreValues> {
    static constexpr std::uint8_t type = 69;
    static constexpr auto fields = std::tuple(&StoreValues::id, &StoreValues::values);
};
template <>
struct Layout<StoreFailed> {
    static constexpr std::uint8_t type = 70;
    static constexpr auto fields =
        std::tuple(&StoreFailed::id, &StoreFailed::error, Words{&StoreFailed::words});
};
template <>
struct Layout<ArenaReady> {
    static constexpr std::uint8_t type = 71;
    static constexpr auto fields = std::tuple(&ArenaReady::id);
};
template <>
struct Layout<StopRequested> {
    static constexpr std::uint8_t type = 72;
    static constexpr auto fields = std::tuple(&StopRequested::signal, &StopRequested::grace_ms);
};
template <>
struct Layout<RoundAborted> {
    static constexpr std::uint8_t type = 73;
    static constexpr auto fields = std::tuple(&RoundAborted::rank, Words{&RoundAborted::words});
};

}  // namespace ddrun::rendezvous
