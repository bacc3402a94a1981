#include "worker_sdk/src/cpu/arena.hpp"

#include <ddrun/error.hpp>

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ddrun::detail {
namespace {

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page - 1) / page * page;
}

void agree_on_layout(std::atomic<std::uint64_t>& shared) {
    std::uint64_t theirs = 0;
    if (shared.compare_exchange_strong(theirs, Arena::layout_version)) return;
    if (theirs != Arena::layout_version)
        throw Error(ErrorKind::refused,
                    "the workers of this node were built with different versions of the SDK "
                    "(shared-memory layouts " +
                        std::to_string(theirs) + " and " + std::to_string(Arena::layout_version) +
                        ")");
}

}  // namespace

std::size_t ArenaShape::slots_at() const {
    return whole_pages(sizeof(SharedHeader));
}

std::size_t ArenaShape::windows_at() const {
    return slots_at() + whole_pages(static_cast<std::size_t>(ranks) * sizeof(Slot));
}

std::size_t ArenaShape::heaps_at() const {
    return windows_at() + static_cast<std::size_t>(ranks) * whole_pages(window_bytes);
}

std::size_t ArenaShape::total() const {
    return heaps_at() + static_cast<std::size_t>(ranks) * whole_pages(heap_bytes);
}

Arena::Arena(const UniqueFd& memory, const ArenaShape& shape) : shape_(shape) {
    void* mapped = ::mmap(nullptr, shape.total(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, memory.get(), 0);
    if (mapped == MAP_FAILED)
        throw Error(ErrorKind::system,
                    "cannot map " + std::to_string(shape.total()) +
                        " bytes of shared memory for the process group: " + std::strerror(errno) +
                        "; see `ulimit -v` and WorkerOptions::shared_bytes_per_rank");
    base_ = static_cast<std::byte*>(mapped);
    agree_on_layout(header().layout);
    // Fewer page faults where the system allows huge pages here; no harm where it does not.
    ::madvise(base_ + shape.heaps_at(), shape.total() - shape.heaps_at(), MADV_HUGEPAGE);
}

Arena::~Arena() {
    ::munmap(base_, shape_.total());
}

SharedHeader& Arena::header() const {
    return *reinterpret_cast<SharedHeader*>(base_);
}

std::span<Slot> Arena::slots() const {
    return {reinterpret_cast<Slot*>(base_ + shape_.slots_at()),
            static_cast<std::size_t>(shape_.ranks)};
}

std::byte* Arena::window(int rank) const {
    return base_ + shape_.windows_at() +
           static_cast<std::size_t>(rank) * whole_pages(shape_.window_bytes);
}

std::byte* Arena::heap(int rank) const {
    return base_ + shape_.heaps_at() +
           static_cast<std::size_t>(rank) * whole_pages(shape_.heap_bytes);
}

}  // namespace ddrun::detail
