#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace train_gpt {

// A vector whose storage starts on a cache line. Vector code then meets the same alignment in every
// process, which is part of "same inputs, same bits".
template <typename T>
struct CacheLineAllocator {
    using value_type = T;
    static constexpr auto alignment = std::align_val_t{64};

    CacheLineAllocator() = default;
    template <typename U>
    CacheLineAllocator(const CacheLineAllocator<U>&) {}

    T* allocate(std::size_t count) {
        return static_cast<T*>(::operator new(count * sizeof(T), alignment));
    }
    void deallocate(T* storage, std::size_t) { ::operator delete(storage, alignment); }
    bool operator==(const CacheLineAllocator&) const { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace train_gpt
