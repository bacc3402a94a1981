#include "launcher/runtime/arena_table.hpp"

#include "launcher/runtime/refusal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace ddrun::launcher {
namespace {

using rendezvous::StoreError;

ArenaTable::Answer refuse(const rendezvous::ArenaOpen& request, StoreError error,
                          const std::string& words) {
    return {rendezvous::StoreFailed{request.id, error, "arena '" + request.name + "': " + words},
            nullptr};
}

std::shared_ptr<const UniqueFd> make_memory(const std::string& name, std::uint64_t bytes) {
    // The kernel shows this label in /proc/PID/maps and takes at most 249 bytes of it.
    const std::string label = "ddrun:" + name.substr(0, 200);
    auto memory = std::make_shared<const UniqueFd>(
        ::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const bool made =
        *memory && ::ftruncate(memory->get(), static_cast<off_t>(bytes)) == 0 &&
        ::fcntl(memory->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    return made ? memory : nullptr;
}

}  // namespace

ArenaTable::Answer ArenaTable::open(const rendezvous::ArenaOpen& request) {
    const auto known = arenas_.find(request.name);
    if (known == arenas_.end()) {
        if (request.bytes == 0 || request.bytes > max_arena_bytes ||
            request.name.size() > rendezvous::max_key_bytes) {
            return refuse(request, StoreError::too_large,
                          std::to_string(request.bytes) + " bytes asked, 1 to " +
                              std::to_string(max_arena_bytes) + " are possible");
        }
        if (arenas_.size() >= max_arenas) {
            return refuse(request, StoreError::full,
                          "there are " + std::to_string(max_arenas) + " already");
        }
        auto memory = make_memory(request.name, request.bytes);
        if (!memory) {
            return refuse(request, StoreError::full, error_text(errno));
        }
        arenas_.emplace(request.name, Arena{request.bytes, memory});
        return {rendezvous::ArenaReady{request.id}, memory};
    }
    if (known->second.bytes != request.bytes) {
        return refuse(request, StoreError::mismatch,
                      std::to_string(request.bytes) + " bytes asked, but it has " +
                          std::to_string(known->second.bytes));
    }
    return {rendezvous::ArenaReady{request.id}, known->second.memory};
}

}  // namespace ddrun::launcher
