#include "rendezvous/core/rank_assignment.hpp"

#include <algorithm>
#include <map>

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

void seat_in_first_gap(Seats& seats, const RankOffer& offer) {
    int place = 0;
    while (seats.contains(place)) ++place;
    seats.emplace(place, offer);
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
    Seats seats;
    std::erase_if(offers, [&](const RankOffer& o) { return seat(seats, o.held_rank, o); });
    std::erase_if(offers, [&](const RankOffer& o) { return seat(seats, o.wished_rank, o); });
    for (const RankOffer& offer : offers) seat_in_first_gap(seats, offer);

    std::vector<Placement> placements;
    int first_rank = 0;
    for (const auto& [place, offer] : seats) {
        const int node_rank = static_cast<int>(placements.size());
        placements.push_back({offer.node, node_rank, first_rank, offer.slots});
        first_rank += offer.slots;
    }
    return placements;
}

}  // namespace ddrun::rendezvous
