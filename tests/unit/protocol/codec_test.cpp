#include "rendezvous/protocol/codec.hpp"

#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/protocol/random_messages.hpp"

#include <string>

using namespace ddrun::rendezvous;
using ddrun::testing::Dice;
using namespace std::string_literals;

namespace {

template <typename Variant>
std::optional<Variant> decode(std::string_view body) {
    if constexpr (std::is_same_v<Variant, FromWorker>) {
        return decode_from_worker(body);
    } else if constexpr (std::is_same_v<Variant, ToWorker>) {
        return decode_to_worker(body);
    } else if constexpr (std::is_same_v<Variant, FromNode>) {
        return decode_from_node(body);
    } else {
        return decode_from_server(body);
    }
}

template <typename Variant, std::size_t Index = 0>
void for_every_message(Dice& dice, auto&& check) {
    if constexpr (Index < std::variant_size_v<Variant>) {
        std::variant_alternative_t<Index, Variant> message;
        ddrun::testing::roll(dice, message);
        check(Variant(message));
        for_every_message<Variant, Index + 1>(dice, check);
    }
}

template <typename Variant>
void check_round_trip(const Variant& message) {
    const std::string frame = encode(message);
    ByteReader head(frame);
    REQUIRE(head.number<std::uint32_t>() == frame.size() - length_bytes);
    const auto back = decode<Variant>(std::string_view(frame).substr(length_bytes));
    REQUIRE(back.has_value());
    REQUIRE(*back == message);
}

template <typename Variant>
void check_malformed(const Variant& message) {
    const std::string frame = encode(message);
    const std::string_view body = std::string_view(frame).substr(length_bytes);
    for (std::size_t size = 0; size < body.size(); ++size) {
        REQUIRE_FALSE(decode<Variant>(body.substr(0, size)).has_value());
    }
    REQUIRE_FALSE(decode<Variant>(std::string(body) + '\0').has_value());
}

}  // namespace

TEMPLATE_TEST_CASE("every message comes back from its bytes as it was", "", FromWorker, ToWorker,
                   FromNode, FromServer) {
    const auto seed = GENERATE(range(1u, 200u));
    INFO("seed " << seed);
    Dice dice(seed);
    for_every_message<TestType>(dice, [](const TestType& message) { check_round_trip(message); });
}

TEMPLATE_TEST_CASE("a message cut anywhere, or with a byte too many, is malformed", "", FromWorker,
                   ToWorker, FromNode, FromServer) {
    const auto seed = GENERATE(range(1u, 20u));
    INFO("seed " << seed);
    Dice dice(seed);
    for_every_message<TestType>(dice, [](const TestType& message) { check_malformed(message); });
}

TEMPLATE_TEST_CASE("flipped bytes never crash, and what decodes encodes to the same bytes", "",
                   FromWorker, ToWorker, FromNode, FromServer) {
    const auto seed = GENERATE(range(1u, 100u));
    INFO("seed " << seed);
    Dice dice(seed);
    for_every_message<TestType>(dice, [&](const TestType& message) {
        std::string frame = encode(message);
        const auto place = static_cast<std::size_t>(
            dice.between(length_bytes, static_cast<std::int64_t>(frame.size()) - 1));
        frame[place] = static_cast<char>(dice.bits() & 0xffu);
        const auto back = decode<TestType>(std::string_view(frame).substr(length_bytes));
        if (back) REQUIRE(encode(*back) == frame);
    });
}

TEST_CASE("a message of the other direction, or of no type, is malformed") {
    CHECK_FALSE(decode_from_worker(""));
    CHECK_FALSE(decode_from_worker("\0"s));
    CHECK_FALSE(decode_from_worker("\x7f"s));
    CHECK_FALSE(decode_from_worker("\x40\1\0\0\0"s));
    CHECK_FALSE(decode_to_worker("\x0b\1\0\0\0\0\0\0\0"s));
}

TEST_CASE("an error number that does not exist is malformed") {
    const std::string good = encode(ToWorker(StoreFailed{1, StoreError::mismatch, ""}));
    std::string bad = good;
    bad[length_bytes + 1 + 8] = static_cast<char>(static_cast<int>(StoreError::mismatch) + 1);
    CHECK(decode_to_worker(std::string_view(good).substr(length_bytes)));
    CHECK_FALSE(decode_to_worker(std::string_view(bad).substr(length_bytes)));
}

TEST_CASE("words are cut when sent and refused when too long") {
    const std::string frame = encode(FromWorker(NeverRetry{std::string(max_words_bytes + 1, 'x')}));
    const auto back = decode_from_worker(std::string_view(frame).substr(length_bytes));
    REQUIRE(back.has_value());
    CHECK(std::get<NeverRetry>(*back).words.size() == max_words_bytes);

    ByteWriter out;
    out.number(std::uint8_t{13});
    out.string(std::string(max_words_bytes + 1, 'x'));
    CHECK_FALSE(decode_from_worker(out.take()));
}

TEST_CASE("a list over its limit is malformed") {
    StoreMultiGet request;
    request.keys.resize(max_list_items);
    const std::string most = encode(FromWorker(request));
    CHECK(decode_from_worker(std::string_view(most).substr(length_bytes)));
    request.keys.emplace_back();
    const std::string more = encode(FromWorker(request));
    CHECK_FALSE(decode_from_worker(std::string_view(more).substr(length_bytes)));
}
