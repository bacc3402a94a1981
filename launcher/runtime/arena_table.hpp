#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ddrun::launcher {

constexpr std::size_t max_arenas = 1024;  // of one round
constexpr std::uint64_t max_arena_bytes = 1ull
                                          << 40;  // address space; memory is taken as it is touched

// The shared-memory arenas of one round: made by the first asker, the same memory for all who name
// it. A memfd has no name in the file system, so nothing can leak; its size is sealed, so no worker
// can take memory away under another one's feet.
class ArenaTable {
  public:
    struct Answer {
        rendezvous::ToWorker reply;              // ArenaReady or StoreFailed
        std::shared_ptr<const UniqueFd> memory;  // rides along with ArenaReady
    };
    [[nodiscard]] Answer open(const rendezvous::ArenaOpen& request);

  private:
    struct Arena {
        std::uint64_t bytes = 0;
        std::shared_ptr<const UniqueFd> memory;
    };
    std::map<std::string, Arena> arenas_;
};

}  // namespace ddrun::launcher
