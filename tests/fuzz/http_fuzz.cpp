// Heads of HTTP requests as the status page reads them, in pieces of every size.
#include "rendezvous/server/http_reader.hpp"
#include "rendezvous/server/status_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace ddrun::rendezvous;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t piece = std::size_t{1} + data[0];
    std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    HttpReader reader;
    std::size_t taken = 0;
    while (!rest.empty()) {
        const std::size_t now = std::min(piece, rest.size());
        if (const auto question = reader.read(rest.substr(0, now))) {
            if (http_answer(*question, {}).rfind("HTTP/1.1 ", 0) != 0) std::abort();
            return 0;
        }
        taken += now;
        if (taken > max_http_head_bytes + piece) std::abort();  // it would read for ever
        rest.remove_prefix(now);
    }
    return 0;
}
