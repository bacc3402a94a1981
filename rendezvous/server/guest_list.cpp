#include "rendezvous/server/guest_list.hpp"

#include "rendezvous/transport/address.hpp"

#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t most_visitors = 256;
constexpr auto every = std::chrono::minutes(1);

}  // namespace

std::optional<std::string> GuestList::turned_away(const boost::asio::ip::address& address,
                                                  const std::string& reason, TimePoint now) {
    ++total_;
    if (!visitors_.contains(address) && visitors_.size() >= most_visitors) return std::nullopt;
    const auto [entry, is_new] = visitors_.try_emplace(address);
    Visitor& visitor = entry->second;
    ++visitor.unsaid;
    if (!is_new && now - visitor.last_said < every) return std::nullopt;
    visitor.last_said = now;
    const std::size_t count = std::exchange(visitor.unsaid, 0);
    return "turned away " +
           (count == 1 ? std::string("a connection") : std::to_string(count) + " connections") +
           " from " + text_of(address) + ": " + reason;
}

}  // namespace ddrun::rendezvous
