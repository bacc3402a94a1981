#include "rendezvous/platform/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace ddrun::detail {

std::uint64_t random_bits() {
    std::uint64_t bits = 0;
    // Up to 256 bytes come whole; only a signal before the generator is ready cuts it short.
    while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return bits;
}

std::string random_hex_128() {
    constexpr char digits[] = "0123456789abcdef";
    std::string hex;
    for (int half = 0; half < 2; ++half) {
        std::uint64_t bits = random_bits();
        for (int i = 0; i < 16; ++i, bits >>= 4) hex.push_back(digits[bits & 0xf]);
    }
    return hex;
}

}  // namespace ddrun::detail
