#pragma once

#include <string>
#include <string_view>
#include <vector>

// Who is which node, and which ranks live there.
namespace ddrun::rendezvous {

struct RankOffer {
    int node = 0;
    int slots = 1;         // workers this node will run; nodes may differ
    int held_rank = -1;    // node rank of the round before; -1: a newcomer
    int wished_rank = -1;  // --node-rank or scheduler index; -1: no wish
    std::string address;
    std::string name;
    bool hosts_endpoint = false;
    std::string topology_group;  // empty: none
};

struct Placement {
    int node = 0;
    int node_rank = 0;
    int first_rank = 0;  // its workers are first_rank .. first_rank + slots - 1
    int slots = 1;
};

// Node ranks 0..n-1 and contiguous ranks, in node rank order: O(n log n). The order of `offers`
// does not matter. A held rank goes before a wish; a wish before the endpoint's host, which asks
// for node rank 0; that before the natural order of addresses (then names, then `node`), in which
// nodes of one topology group follow the first of them. Newcomers take the holes, so that nobody
// who holds a rank moves; holes that nobody takes close, with order kept. Where ranks are held, a
// wish beyond them and the holes counts as none.
[[nodiscard]] std::vector<Placement> assign_ranks(std::vector<RankOffer> offers);

// Runs of digits compare as numbers: "n2" < "n10", "10.9.0.2" < "10.9.0.10". A total order.
[[nodiscard]] bool natural_less(std::string_view left, std::string_view right);

}  // namespace ddrun::rendezvous
