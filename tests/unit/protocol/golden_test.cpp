#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/protocol/golden_messages.hpp"
#include "tests/unit/protocol/golden_node_messages.hpp"

#include <string>

using namespace ddrun::rendezvous;

namespace {

std::string hexadecimal(std::string_view bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4];
        text += digits[byte & 0xf];
    }
    return text;
}

void check(const auto& golden, auto decode) {
    INFO(golden.name);
    const std::string frame = encode(golden.message);
    CHECK(hexadecimal(frame) == golden.frame);
    const auto back = decode(std::string_view(frame).substr(length_bytes));
    REQUIRE(back.has_value());
    CHECK(*back == golden.message);
}

}  // namespace

TEST_CASE("the bytes of messages from workers never change") {
    const auto all = ddrun::testing::golden_from_worker();
    CHECK(all.size() == std::variant_size_v<FromWorker>);
    for (const auto& golden : all) check(golden, decode_from_worker);
}

TEST_CASE("the bytes of messages to workers never change") {
    const auto all = ddrun::testing::golden_to_worker();
    CHECK(all.size() == std::variant_size_v<ToWorker>);
    for (const auto& golden : all) check(golden, decode_to_worker);
}

TEST_CASE("the bytes of messages from nodes never change") {
    const auto all = ddrun::testing::golden_from_node();
    CHECK(all.size() == std::variant_size_v<FromNode>);
    for (const auto& golden : all) check(golden, decode_from_node);
    const auto payloads = ddrun::testing::golden_to_job();
    CHECK(payloads.size() == std::variant_size_v<ToCoordinator> + std::variant_size_v<ToJob> - 1);
    for (const auto& golden : payloads) check(golden, decode_from_node);
}

TEST_CASE("the bytes of messages from the server never change") {
    const auto all = ddrun::testing::golden_from_server();
    CHECK(all.size() == std::variant_size_v<FromServer>);
    for (const auto& golden : all) check(golden, decode_from_server);
    const auto payloads = ddrun::testing::golden_from_job();
    CHECK(payloads.size() ==
          std::variant_size_v<FromCoordinator> + std::variant_size_v<FromJob> - 1);
    for (const auto& golden : payloads) check(golden, decode_from_server);
}
