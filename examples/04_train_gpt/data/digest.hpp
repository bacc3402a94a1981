#pragma once

#include <cstdint>
#include <string_view>

namespace train_gpt {

// 64-bit FNV-1a: tells unequal data apart and finds damage; no defence against intent.
constexpr std::uint64_t digest_of(std::string_view bytes) {
    std::uint64_t digest = 0xcbf29ce484222325ULL;
    for (const char byte : bytes) {
        digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    }
    return digest;
}

}  // namespace train_gpt
