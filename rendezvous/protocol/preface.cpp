#include "rendezvous/protocol/preface.hpp"

#include <algorithm>

namespace ddrun::rendezvous {
namespace {

using Result = PrefaceCheck::Result;

constexpr std::string_view magic =
    "\xdd"
    "ddrun\1";  // the last byte is the preface's version
static_assert(magic.size() + 1 == preface_bytes && magic.front() == preface_first_byte);

}  // namespace

std::string preface(PrefaceKind kind) {
    return std::string(magic) + static_cast<char>(kind);
}

PrefaceCheck check_preface(std::string_view received) {
    const std::size_t here = std::min(received.size(), magic.size());
    if (received.substr(0, here) != magic.substr(0, here)) return {Result::foreign, {}};
    if (received.size() < preface_bytes) return {};
    switch (const auto kind = static_cast<PrefaceKind>(received[magic.size()])) {
        case PrefaceKind::node:
        case PrefaceKind::obituary:
        case PrefaceKind::munge:
            return {Result::whole, kind};
    }
    return {Result::foreign, {}};
}

}  // namespace ddrun::rendezvous
