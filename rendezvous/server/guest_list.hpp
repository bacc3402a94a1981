#pragma once

#include "rendezvous/protocol/time.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ddrun::rendezvous {

// Who came to the door and was turned away, in few words: a port scanner must not fill the log.
// Bounded; no clock.
class GuestList {
  public:
    // `why`: for people; empty where the peer did not even speak our protocol.
    void turned_away(const std::string& address, const std::string& why, TimePoint now);
    // Lines to say by now, to be asked for a few times a second: for each address and reason one a
    // second after the first time, then one every ten minutes with what has come meanwhile.
    [[nodiscard]] std::vector<std::string> lines_due(TimePoint now);

    [[nodiscard]] std::size_t total() const { return total_; }

  private:
    struct Visitor {
        std::size_t unsaid = 0;
        TimePoint next_line{};
    };
    std::map<std::pair<std::string, std::string>, Visitor> visitors_;  // by address and reason
    std::size_t total_ = 0;
};

}  // namespace ddrun::rendezvous
