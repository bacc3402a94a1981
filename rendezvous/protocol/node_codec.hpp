#pragma once

#include "rendezvous/protocol/node_messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Messages between agent and rendezvous server to bytes and back; frames as in codec.hpp.
namespace ddrun::rendezvous {

// A whole frame, ready to send. Words and names over their limit are cut.
[[nodiscard]] std::string encode(const FromNode& message);
[[nodiscard]] std::string encode(const FromServer& message);
// The same, behind what `bytes` holds already.
void append(std::string& bytes, const FromNode& message);
void append(std::string& bytes, const FromServer& message);

// The body of one frame (type byte first, no length). nullopt: malformed, close the connection.
[[nodiscard]] std::optional<FromNode> decode_from_node(std::string_view frame);
[[nodiscard]] std::optional<FromServer> decode_from_server(std::string_view frame);

// The highest version that both sides speak; nullopt: there is none, and the node is refused.
struct Versions {
    std::uint32_t oldest = oldest_node_protocol;
    std::uint32_t newest = newest_node_protocol;
};
[[nodiscard]] std::optional<std::uint32_t> common_version(Versions ours, Versions theirs);
// Why there is none: "n1 (ddrun 0.2.0) speaks versions 2 to 3 of the rendezvous protocol, the
// server (ddrun 0.1.0) speaks 1: install one ddrun on all nodes".
[[nodiscard]] std::string version_refusal(const NodeHello& hello, Versions ours,
                                          std::string_view our_build);

}  // namespace ddrun::rendezvous
