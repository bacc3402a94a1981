// Several clients of PyTorch's store, each sending what it likes in pieces of every size; in pieces
// or whole, the store answers the same.
#include "rendezvous/tcpstore/store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace ddrun::rendezvous::tcpstore;

namespace {

constexpr std::size_t clients = 3;

std::string play(std::string_view bytes, std::size_t piece) {
    Store store;
    std::array<RequestReader, clients> readers;
    std::array<bool, clients> closed{};
    std::string said;
    for (std::size_t at = 0; at + 1 < bytes.size();) {
        const std::size_t client = static_cast<std::uint8_t>(bytes[at]) % clients;
        const std::size_t length =
            std::min<std::size_t>(static_cast<std::uint8_t>(bytes[at + 1]), bytes.size() - at - 2);
        std::string_view turn = bytes.substr(at + 2, length);
        at += 2 + length;
        while (!turn.empty() && !closed[client]) {
            const std::size_t now = std::min(piece, turn.size());
            readers[client].append(turn.substr(0, now));
            turn.remove_prefix(now);
            while (const Request* request = readers[client].next()) {
                const auto outcome =
                    store.handle(client, readers[client].is_legacy(), *request, said);
                for (const auto woken : outcome.woken) said += "<" + std::to_string(woken) + ">";
                closed[client] = closed[client] || outcome.close;
                if (closed[client]) break;
            }
            closed[client] = closed[client] || readers[client].broken();
            if (closed[client]) store.forget(client);
        }
    }
    return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (play(bytes, 1) != play(bytes, 1u << 20)) std::abort();
    return 0;
}
