#pragma once

#include <cstdint>
#include <string_view>

namespace ddrun {

// FNV-1a of 64 bits (Fowler, Noll, Vo): the same on every node, in every process. Not against
// attackers.
constexpr std::uint64_t fnv1a_basis = 0xcbf29ce484222325u;

// One more symbol; more than a byte where it must not be taken for one.
[[nodiscard]] constexpr std::uint64_t fnv1a_step(std::uint64_t hash, std::uint64_t symbol) {
    return (hash ^ symbol) * 0x100000001b3u;
}

// Of `bytes`, behind what `hash` stands for.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t hash = fnv1a_basis) {
    for (const char byte : bytes) hash = fnv1a_step(hash, static_cast<unsigned char>(byte));
    return hash;
}

}  // namespace ddrun
