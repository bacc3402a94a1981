#include "rendezvous/server/guest_list.hpp"

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t most_visitors = 256;
constexpr auto first_line_after = std::chrono::seconds(1);
constexpr auto next_line_after = std::chrono::minutes(10);
constexpr const char* others = "other addresses";

std::string line(std::size_t count, const std::string& address, const std::string& why) {
    const std::string number = std::to_string(count);
    const std::string connections = count == 1 ? "connection" : "connections";
    if (why.empty()) return "ignored " + number + " malformed " + connections + " from " + address;
    return "refused " + number + " " + connections + " from " + address + ": " + why;
}

}  // namespace

void GuestList::turned_away(const std::string& address, const std::string& why, TimePoint now) {
    ++total_;
    std::pair<std::string, std::string> key(address, why);
    if (visitors_.size() >= most_visitors && !visitors_.contains(key)) key = {others, ""};
    const auto [entry, is_new] = visitors_.try_emplace(std::move(key));
    if (is_new) entry->second.next_line = now + first_line_after;
    ++entry->second.unsaid;
}

std::vector<std::string> GuestList::lines_due(TimePoint now) {
    std::vector<std::string> lines;
    for (auto entry = visitors_.begin(); entry != visitors_.end();) {
        auto& [key, visitor] = *entry;
        if (now < visitor.next_line) {
            ++entry;
        } else if (visitor.unsaid == 0) {
            entry = visitors_.erase(entry);
        } else {
            lines.push_back(line(visitor.unsaid, key.first, key.second));
            visitor = {0, now + next_line_after};
            ++entry;
        }
    }
    return lines;
}

}  // namespace ddrun::rendezvous
