#include "rendezvous/protocol/node_codec.hpp"

#include "rendezvous/protocol/message_fields.hpp"
#include "rendezvous/protocol/node_layout.hpp"

#include <algorithm>

namespace ddrun::rendezvous {
namespace {

std::string in_words(Versions versions) {
    std::string words = std::to_string(versions.oldest);
    if (versions.newest != versions.oldest) words += " to " + std::to_string(versions.newest);
    return words;
}

std::string in_words(std::string_view build) {
    return build.empty() ? "" : " (ddrun " + std::string(build) + ")";
}

}  // namespace

std::string encode(const FromNode& message) {
    return encode_frame(message);
}
std::string encode(const FromServer& message) {
    return encode_frame(message);
}

void append(std::string& bytes, const FromNode& message) {
    append_frame(bytes, message);
}
void append(std::string& bytes, const FromServer& message) {
    append_frame(bytes, message);
}

std::optional<FromNode> decode_from_node(std::string_view frame) {
    return decode_frame<FromNode>(frame);
}
std::optional<FromServer> decode_from_server(std::string_view frame) {
    return decode_frame<FromServer>(frame);
}

std::optional<std::uint32_t> common_version(Versions ours, Versions theirs) {
    const std::uint32_t newest = std::min(ours.newest, theirs.newest);
    if (newest < std::max(ours.oldest, theirs.oldest)) return std::nullopt;
    return newest;
}

std::string version_refusal(const NodeHello& hello, Versions ours, std::string_view our_build) {
    const Versions theirs{hello.oldest, hello.newest};
    return hello.offer.node_name + in_words(hello.build) + " speaks version " + in_words(theirs) +
           " of the rendezvous protocol, the server" + in_words(our_build) + " speaks " +
           in_words(ours) + ": install one ddrun on all nodes";
}

}  // namespace ddrun::rendezvous
