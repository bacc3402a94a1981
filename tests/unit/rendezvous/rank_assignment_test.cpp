#include "rendezvous/core/rank_assignment.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <algorithm>
#include <functional>
#include <utility>

using namespace ddrun::rendezvous;
using ddrun::testing::Dice;

namespace {

RankOffer offer(int node, const std::string& address, int held = -1, int wished = -1,
                int slots = 1) {
    return {node, slots, held, wished, address, "n" + std::to_string(node), false, {}};
}

RankOffer host(RankOffer offer) {
    offer.hosts_endpoint = true;
    return offer;
}

RankOffer in_group(RankOffer offer, const std::string& group) {
    offer.topology_group = group;
    return offer;
}

std::vector<int> order_of(const std::vector<Placement>& placements) {
    std::vector<int> nodes;
    for (const Placement& placement : placements) nodes.push_back(placement.node);
    return nodes;
}

using Nodes = std::vector<int>;

// --- the slow twin: one rule at a time, in words ------------------------------------------------

bool twin_is_better(const RankOffer& a, const RankOffer& b) {
    if (natural_less(a.address, b.address)) return true;
    if (natural_less(b.address, a.address)) return false;
    if (natural_less(a.name, b.name)) return true;
    if (natural_less(b.name, a.name)) return false;
    return a.node < b.node;
}

int twin_best(const std::vector<RankOffer>& offers, auto wants) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(offers.size()); ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (!wants(offers[at])) continue;
        if (best < 0 || twin_is_better(offers[at], offers[static_cast<std::size_t>(best)]))
            best = i;
    }
    return best;
}

// Asks of one place after the other: who held it? who wished it? does the endpoint's host take it?
// who is next without a place? A place that nobody wants yet everybody has passed stays empty.
class Twin {
  public:
    explicit Twin(std::vector<RankOffer> offers) : offers_(std::move(offers)) {
        bool any_held = false;
        int places_held = static_cast<int>(offers_.size());
        for (const RankOffer& o : offers_) {
            any_held |= o.held_rank >= 0;
            places_held = std::max(places_held, o.held_rank + 1);
        }
        for (RankOffer& o : offers_) {
            if (any_held && o.wished_rank >= places_held) o.wished_rank = -1;
        }
    }

    Nodes order() {
        for (int place = 0; place < places; ++place)
            take(place, [&](const RankOffer& o) { return o.held_rank == place; });
        for (int place = 0; place < places; ++place)
            take(place, [&](const RankOffer& o) { return o.wished_rank == place; });
        std::string group = take(0, [](const RankOffer& o) { return o.hosts_endpoint; });
        for (int place = 0; place < places; ++place) {
            if (seats_[static_cast<std::size_t>(place)] >= 0) continue;
            const bool neighbours = !group.empty() && twin_best(offers_, of(group)) >= 0;
            group = neighbours ? take(place, of(group))
                               : take(place, [](const RankOffer&) { return true; });
        }
        std::erase(seats_, -1);
        return seats_;
    }

  private:
    static constexpr int places = 40;

    static std::function<bool(const RankOffer&)> of(const std::string& group) {
        return [group](const RankOffer& o) { return o.topology_group == group; };
    }
    // Returns the topology group of the one who took it.
    std::string take(int place, const std::function<bool(const RankOffer&)>& wants) {
        int& seat = seats_[static_cast<std::size_t>(place)];
        const int chosen = seat >= 0 ? -1 : twin_best(offers_, wants);
        if (chosen < 0) return {};
        const RankOffer taken = offers_[static_cast<std::size_t>(chosen)];
        seat = taken.node;
        offers_.erase(offers_.begin() + chosen);
        return taken.topology_group;
    }

    std::vector<RankOffer> offers_;
    Nodes seats_ = Nodes(places, -1);
};

std::vector<RankOffer> random_offers(Dice& dice) {
    std::vector<RankOffer> offers;
    const int count = dice.number(1, 8);
    for (int node = 0; node < count; ++node) {
        offers.push_back(offer(node, "10.9.0." + std::to_string(dice.number(1, 12)),
                               dice.one_in(3) ? dice.number(0, 9) : -1,
                               dice.one_in(3) ? dice.number(0, 9) : -1, dice.number(1, 8)));
        offers.back().hosts_endpoint = dice.one_in(6);
        if (dice.one_in(2)) offers.back().topology_group = dice.one_in(2) ? "east" : "west";
    }
    return offers;
}

}  // namespace

TEST_CASE("newcomers go by the natural order of their addresses") {
    CHECK(order_of(assign_ranks({offer(0, "10.9.0.10"), offer(1, "10.9.0.2"),
                                 offer(2, "10.9.0.1")})) == Nodes{2, 1, 0});
}

TEST_CASE("a wish goes before the order of addresses, a held rank before a wish") {
    CHECK(order_of(assign_ranks({offer(0, "a"), offer(1, "b", -1, 0)})) == Nodes{1, 0});
    CHECK(order_of(assign_ranks({offer(0, "b", 0), offer(1, "a", -1, 0)})) == Nodes{0, 1});
}

TEST_CASE("a newcomer takes the hole and nobody else moves") {
    CHECK(order_of(assign_ranks({offer(0, "d", 0), offer(1, "c", 2), offer(2, "a")})) ==
          Nodes{0, 2, 1});
}

TEST_CASE("a spare that takes a hole renumbers nobody, whatever it wishes") {
    for (const int wish : {-1, 0, 1, 3, 9}) {
        CHECK(order_of(assign_ranks({offer(0, "d", 0), offer(1, "c", 2), offer(3, "b", 3),
                                     offer(2, "a", -1, wish)})) == Nodes{0, 2, 1, 3});
    }
}

TEST_CASE("RDZV-14 the endpoint's host is node rank 0, where nobody holds or wishes that") {
    CHECK(order_of(assign_ranks({offer(0, "a"), host(offer(1, "b"))})) == Nodes{1, 0});
    CHECK(order_of(assign_ranks({offer(0, "a", -1, 0), host(offer(1, "b"))})) == Nodes{0, 1});
    CHECK(order_of(assign_ranks({offer(0, "a", 0), host(offer(1, "b", 1))})) == Nodes{0, 1});
    CHECK(order_of(assign_ranks({offer(0, "a", -1, 0), offer(2, "c"),
                                 host(offer(1, "b", -1, 2))})) == Nodes{0, 2, 1});
}

TEST_CASE("nodes of one topology group get neighbouring ranks") {
    CHECK(order_of(assign_ranks({in_group(offer(0, "a"), "x"), in_group(offer(1, "b"), "y"),
                                 offer(2, "c"), in_group(offer(3, "d"), "x"),
                                 in_group(offer(4, "e"), "y")})) == Nodes{0, 3, 1, 4, 2});
    CHECK(order_of(assign_ranks({in_group(offer(0, "a"), "x"), in_group(offer(1, "b"), "y"),
                                 host(in_group(offer(2, "c"), "y"))})) == Nodes{2, 1, 0});
}

TEST_CASE("ten thousand nodes find their places at once") {
    std::vector<RankOffer> offers;
    for (int node = 0; node < 10'000; ++node) {
        offers.push_back(in_group(
            offer(node, "10.9." + std::to_string(node % 100) + "." + std::to_string(node / 100)),
            "rack " + std::to_string(node % 300)));
    }
    const auto placements = assign_ranks(offers);
    REQUIRE(placements.size() == 10'000);
    CHECK(placements.back().first_rank == 9'999);
}

TEST_CASE("when the world shrinks, order is kept and holes close") {
    CHECK(order_of(assign_ranks({offer(0, "a", 3), offer(1, "b", 1)})) == Nodes{1, 0});
}

TEST_CASE("ranks are contiguous over nodes of different size") {
    const auto placements = assign_ranks(
        {offer(0, "a", -1, -1, 3), offer(1, "b", -1, -1, 1), offer(2, "c", -1, -1, 2)});
    CHECK(placements[0].first_rank == 0);
    CHECK(placements[1].first_rank == 3);
    CHECK(placements[2].first_rank == 4);
}

TEST_CASE("rank assignment agrees with its slow twin, in any order of arrival") {
    const auto seed = GENERATE(range(1u, 2000u));
    INFO("seed " << seed);
    Dice dice(seed);
    std::vector<RankOffer> offers = random_offers(dice);
    const Nodes expected = Twin(offers).order();
    REQUIRE(order_of(assign_ranks(offers)) == expected);
    std::reverse(offers.begin(), offers.end());
    REQUIRE(order_of(assign_ranks(offers)) == expected);
}

TEST_CASE("node ranks and ranks have neither gap nor double") {
    const auto seed = GENERATE(range(1u, 200u));
    INFO("seed " << seed);
    Dice dice(seed);
    const auto offers = random_offers(dice);
    const auto placements = assign_ranks(offers);
    REQUIRE(placements.size() == offers.size());
    int node_rank = 0, first_rank = 0;
    for (const Placement& placement : placements) {
        REQUIRE(placement.node_rank == node_rank++);
        REQUIRE(placement.first_rank == first_rank);
        first_rank += placement.slots;
    }
}

TEST_CASE("natural order compares numbers as numbers and is total") {
    const std::vector<std::string> sorted = {"",
                                             "1",
                                             "2",
                                             "10",
                                             "a",
                                             "a1",
                                             "a1b",
                                             "a2",
                                             "a10",
                                             "a10.2",
                                             "a10.10",
                                             "b",
                                             "b99999999999999999999999",
                                             "b100000000000000000000000"};
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        for (std::size_t j = 0; j < sorted.size(); ++j) {
            INFO(sorted[i] << " and " << sorted[j]);
            CHECK(natural_less(sorted[i], sorted[j]) == (i < j));
        }
    }
    CHECK(natural_less("01", "1") != natural_less("1", "01"));
}
