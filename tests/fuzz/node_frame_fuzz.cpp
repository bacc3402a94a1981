// Whatever a peer writes into a connection of the rendezvous, in whatever pieces: no crash, bounded
// memory, and every frame that decodes encodes to itself.

#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/protocol/preface.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace ddrun::rendezvous;

namespace {

void expect(bool holds) {
    if (!holds) std::abort();
}

void check_body(std::string_view body) {
    if (const auto message = decode_from_node(body)) {
        expect(std::string_view(encode(*message)).substr(length_bytes) == body);
    }
    if (const auto message = decode_from_server(body)) {
        expect(std::string_view(encode(*message)).substr(length_bytes) == body);
    }
}

// What a server does with the bytes of a stranger.
void check_stream(std::string_view input, std::size_t piece) {
    const auto greeting = check_preface(input);
    if (greeting.result == PrefaceCheck::Result::whole) {
        expect(preface(greeting.kind) == input.substr(0, preface_bytes));
        input.remove_prefix(preface_bytes);
    }
    FrameReader reader(max_hello_frame_bytes);
    for (std::size_t at = 0; at < input.size(); at += piece) {
        reader.append(input.substr(at, piece));
        while (const auto frame = reader.next()) {
            expect(!frame->empty() && frame->size() <= max_hello_frame_bytes);
            check_body(*frame);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    check_body(input);
    check_stream(input, std::size_t{1} + data[0]);
    return 0;
}
