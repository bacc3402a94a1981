#pragma once

#include "rendezvous/protocol/time.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace ddrun::rendezvous {

// Who came to the door and was turned away, in few words: a port scanner must not fill the log.
// Bounded; no clock.
class GuestList {
  public:
    // A connection from `address` was malformed or not ours. A line to say, at most one per address
    // and `every`, and none beyond so many addresses.
    [[nodiscard]] std::optional<std::string> turned_away(const boost::asio::ip::address& address,
                                                         const std::string& reason, TimePoint now);
    [[nodiscard]] std::size_t total() const { return total_; }

  private:
    struct Visitor {
        std::size_t unsaid = 0;
        TimePoint last_said{};
    };
    std::map<boost::asio::ip::address, Visitor> visitors_;
    std::size_t total_ = 0;
};

}  // namespace ddrun::rendezvous
