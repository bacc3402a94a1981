#pragma once

#include <cstddef>
#include <cstring>

namespace ddrun::detail {

// memcpy may not be given a null pointer, not even for nothing, nor one place twice.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace ddrun::detail
