#include "rendezvous/core/membership.hpp"

#include <algorithm>

namespace ddrun::rendezvous {

void Membership::move(int node, Member& member, TimePoint deadline) {
    deadlines_.erase({member.deadline, node});
    member.deadline = deadline;
    deadlines_.emplace(deadline, node);
}

void Membership::joined(int node, TimePoint now) {
    Member& member = members_[node];
    member.heard = now;
    member.suspect = false;
    move(node, member, now + rules_.lease);
}

bool Membership::heard(int node, TimePoint now) {
    const auto found = members_.find(node);
    if (found == members_.end()) return false;
    Member& member = found->second;
    member.heard = now;
    const bool was_suspect = std::exchange(member.suspect, false);
    move(node, member, now + rules_.lease);
    return was_suspect;
}

bool Membership::closed(int node, TimePoint now) {
    const auto found = members_.find(node);
    if (found == members_.end() || found->second.suspect) return false;
    found->second.suspect = true;
    move(node, found->second,
         std::min(found->second.heard + rules_.lease, now + rules_.resume_patience));
    return true;
}

void Membership::forget(int node) {
    const auto found = members_.find(node);
    if (found == members_.end()) return;
    deadlines_.erase({found->second.deadline, node});
    members_.erase(found);
}

// Everybody is given the time back, and so is the fence: it moves with `heard`.
void Membership::was_slow(Duration time) {
    deadlines_.clear();
    for (auto& [node, member] : members_) {
        member.heard += time;
        member.deadline += time;
        deadlines_.emplace(member.deadline, node);
    }
}

std::vector<int> Membership::lost_by(TimePoint now) {
    std::vector<int> lost;
    for (const auto& [deadline, node] : deadlines_) {
        if (deadline > now) break;
        lost.push_back(node);
    }
    return lost;
}

std::optional<TimePoint> Membership::next_deadline() const {
    if (deadlines_.empty()) return std::nullopt;
    return deadlines_.begin()->first;
}

TimePoint Membership::fenced_by(int node) const {
    return last_heard(node) + rules_.lease;
}

bool Membership::is_suspect(int node) const {
    const auto found = members_.find(node);
    return found != members_.end() && found->second.suspect;
}

TimePoint Membership::last_heard(int node) const {
    const auto found = members_.find(node);
    return found == members_.end() ? TimePoint{} : found->second.heard;
}

}  // namespace ddrun::rendezvous
