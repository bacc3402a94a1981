#include "rendezvous/core/rank_assignment.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ddrun::rendezvous {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Cuts a run of digits, or else one character, off the front.
std::string_view take_part(std::string_view& text) {
    std::size_t size = 1;
    if (is_digit(text.front())) {
        while (size < text.size() && is_digit(text[size])) ++size;
    }
    const std::string_view part = text.substr(0, size);
    text.remove_prefix(size);
    return part;
}

std::string_view without_zeros(std::string_view digits) {
    const std::size_t first = digits.find_first_not_of('0');
    return first == std::string_view::npos ? std::string_view{} : digits.substr(first);
}

// <0, 0, >0
int compare_parts(std::string_view left, std::string_view right) {
    if (!is_digit(left.front()) || !is_digit(right.front())) return left.compare(right);
    left = without_zeros(left);
    right = without_zeros(right);
    if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
    return left.compare(right);
}

bool comes_before(const RankOffer& left, const RankOffer& right) {
    if (left.address != right.address) return natural_less(left.address, right.address);
    if (left.name != right.name) return natural_less(left.name, right.name);
    return left.node < right.node;
}

// Places with gaps; the gaps close when ranks are counted.
using Seats = std::map<int, RankOffer>;

bool seat(Seats& seats, int place, const RankOffer& offer) {
    return place >= 0 && seats.emplace(place, offer).second;
}

// Whoever holds a rank keeps it, so a newcomer must not take a place behind the last one while
// there are holes before it.
void drop_wishes_beyond(std::vector<RankOffer>& offers) {
    int highest = -1;
    for (const RankOffer& offer : offers) highest = std::max(highest, offer.held_rank);
    if (highest < 0) return;
    const int places = std::max(static_cast<int>(offers.size()), highest + 1);
    for (RankOffer& offer : offers) {
        if (offer.wished_rank >= places) offer.wished_rank = -1;
    }
}

// The first one, where several nodes say so; returns its topology group.
std::string seat_endpoints_host(Seats& seats, std::vector<RankOffer>& offers) {
    const auto host = std::find_if(offers.begin(), offers.end(),
                                   [](const RankOffer& offer) { return offer.hosts_endpoint; });
    if (host == offers.end() || !seat(seats, 0, *host)) return {};
    std::string group = host->topology_group;
    offers.erase(host);
    return group;
}

// Nodes of one group follow the first of them; `first_group` goes before all others.
void make_neighbours(std::vector<RankOffer>& offers, const std::string& first_group) {
    std::map<std::string, std::size_t> turns;
    if (!first_group.empty()) turns[first_group] = 0;
    std::vector<std::pair<std::size_t, RankOffer>> queue;
    queue.reserve(offers.size());
    for (RankOffer& offer : offers) {
        const std::size_t own = queue.size() + 1;
        const bool alone = offer.topology_group.empty();
        const std::size_t turn =
            alone ? own : turns.emplace(offer.topology_group, own).first->second;
        queue.emplace_back(turn, std::move(offer));
    }
    std::stable_sort(queue.begin(), queue.end(),
                     [](const auto& left, const auto& right) { return left.first < right.first; });
    for (std::size_t i = 0; i < queue.size(); ++i) offers[i] = std::move(queue[i].second);
}

void seat_in_gaps(Seats& seats, const std::vector<RankOffer>& offers) {
    int place = 0;
    for (const RankOffer& offer : offers) {
        while (!seat(seats, place, offer)) ++place;
    }
}

}  // namespace

bool natural_less(std::string_view left, std::string_view right) {
    std::string_view a = left, b = right;
    while (!a.empty() && !b.empty()) {
        const int order = compare_parts(take_part(a), take_part(b));
        if (order != 0) return order < 0;
    }
    if (a.empty() != b.empty()) return a.empty();
    return left < right;  // "n01" and "n1"
}

std::vector<Placement> assign_ranks(std::vector<RankOffer> offers) {
    std::sort(offers.begin(), offers.end(), comes_before);
    drop_wishes_beyond(offers);
    Seats seats;
    std::erase_if(offers, [&](const RankOffer& o) { return seat(seats, o.held_rank, o); });
    std::erase_if(offers, [&](const RankOffer& o) { return seat(seats, o.wished_rank, o); });
    make_neighbours(offers, seat_endpoints_host(seats, offers));
    seat_in_gaps(seats, offers);

    std::vector<Placement> placements;
    placements.reserve(seats.size());
    int first_rank = 0;
    for (const auto& [place, offer] : seats) {
        const int node_rank = static_cast<int>(placements.size());
        placements.push_back({offer.node, node_rank, first_rank, offer.slots});
        first_rank += offer.slots;
    }
    return placements;
}

}  // namespace ddrun::rendezvous
