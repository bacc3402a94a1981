#pragma once

#include "rendezvous/platform/unique_fd.hpp"

#include <optional>
#include <string>

namespace ddrun::launcher {

// Keeps MASTER_PORT for this job from before the first worker until the end: bound on every address
// of both families with SO_REUSEADDR and never listening, so that rank 0 can listen on it and
// nobody else is given it. A second ddrun is kept away by a name of its own, since two such
// reservations would get along with each other.
class MasterPort {
  public:
    // `wanted` absent: any free port. Throws Refusal(71) naming `address`, port, reason and holder.
    static MasterPort reserve(std::optional<int> wanted, const std::string& address);
    // Offers the port, but does not keep it: for a node that is not to have rank 0.
    static MasterPort unreserved(int port);

    [[nodiscard]] int number() const { return number_; }

  private:
    UniqueFd socket_;
    UniqueFd claim_;
    int number_ = 0;
};

}  // namespace ddrun::launcher
