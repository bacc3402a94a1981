#pragma once

#include <cstdint>
#include <string>

namespace ddrun::detail {

// From the kernel's generator; never blocks once the machine is up. Throws std::system_error.
[[nodiscard]] std::uint64_t random_bits();

// 128 random bits as 32 hexadecimal digits: the incarnation of a job or a node.
[[nodiscard]] std::string random_hex_128();

}  // namespace ddrun::detail
