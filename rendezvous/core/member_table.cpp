#include "rendezvous/core/member_table.hpp"

#include <limits>

namespace ddrun::rendezvous {

const Member* MemberTable::find(int node) const {
    const auto found = members_.find(node);
    return found == members_.end() ? nullptr : &found->second;
}

void MemberTable::add(int node, const Join& offer) {
    Member& member = members_[node];
    member.node = node;
    member.offer = offer;
    member.arrival = ++arrivals_;
    if (offer.wished_node_rank >= 0) wishes_.emplace(offer.wished_node_rank, node);
    count(member, 1);
}

void MemberTable::remove(int node) {
    const auto found = members_.find(node);
    if (found == members_.end()) return;
    count(found->second, -1);
    wishes_.erase({found->second.offer.wished_node_rank, node});
    members_.erase(found);
}

const Member* MemberTable::holder_of(int wished_rank, std::optional<int> except) const {
    constexpr int lowest = std::numeric_limits<int>::min();
    for (auto wish = wishes_.lower_bound({wished_rank, lowest});
         wish != wishes_.end() && wish->first == wished_rank; ++wish) {
        const Member* member = find(wish->second);
        if (wish->second != except && !member->silent() && member->stays()) return member;
    }
    return nullptr;
}

void MemberTable::count(const Member& member, int by) {
    const auto add = [by](int& sum, bool counts) { sum += counts ? by : 0; };
    const bool seated = member.seated;
    add(tally_.seated, seated);
    add(tally_.not_done, seated && !member.done);
    add(tally_.unfinished, seated && !member.finished());
    add(tally_.not_gone, seated && !member.gone);
    add(tally_.silent_witnesses, seated && !member.finished() && member.silent());
    add(tally_.silent_stayers, seated && member.stays() && member.silent());
    add(tally_.stayers, seated && member.stays());
    add(tally_.ready, !seated && member.stays() && !member.silent());
    add(tally_.absent, member.absent());
    add(tally_.present, member.stays() && !member.silent());
}

}  // namespace ddrun::rendezvous
