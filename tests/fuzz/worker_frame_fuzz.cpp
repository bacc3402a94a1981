// Whatever a worker writes into its agent's socket, in whatever pieces: no crash, bounded memory,
// and every frame that decodes encodes to itself.

#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame_reader.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace ddrun::rendezvous;

namespace {

void expect(bool holds) {
    if (!holds) std::abort();
}

void check_body(std::string_view body) {
    if (const auto message = decode_from_worker(body)) {
        expect(std::string_view(encode(*message)).substr(length_bytes) == body);
    }
    if (const auto message = decode_to_worker(body)) {
        expect(std::string_view(encode(*message)).substr(length_bytes) == body);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    check_body(input);

    const std::size_t piece = 1 + data[0];
    FrameReader reader(1024);
    for (std::size_t at = 0; at < input.size(); at += piece) {
        reader.append(input.substr(at, piece));
        while (const auto frame = reader.next()) {
            expect(!frame->empty() && frame->size() <= 1024);
            check_body(*frame);
        }
    }
    return 0;
}
