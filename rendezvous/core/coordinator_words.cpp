// What a status page, a log line or a failing test may ask.

#include "rendezvous/core/coordinator.hpp"

namespace ddrun::rendezvous {

bool Coordinator::is_closing() const {
    const MemberTable::Tally& tally = members_.tally();
    return state_ == State::running && (tally.not_done < tally.seated || finished_and_left_ > 0);
}

int Coordinator::round_of(int node) const {
    const Member* member = members_.find(node);
    return member != nullptr && member->seated ? round_ : 0;
}

std::vector<MemberStatus> Coordinator::members() const {
    std::vector<MemberStatus> members;
    for (const auto& [node, member] : members_) {
        members.push_back({node, member.offer.node_name, member.seated ? member.node_rank : -1,
                           member.seated ? member.first_rank : -1, member.offer.slots,
                           std::string(state_of(member))});
    }
    return members;
}

std::string_view Coordinator::state_of(const Member& member) const {
    if (member.absent()) return "absent";
    if (member.unfit) return "unfit";
    if (member.own_end) return "leaving";
    if (member.silent()) return "silent";
    if (!member.seated) return member.parked ? "spare" : "waiting";
    if (member.gone) return "gone";
    return member.done ? "done" : "running";
}

std::string Coordinator::describe() const {
    std::string line = "round " + std::to_string(round_) + " " + std::string(name_of(state_)) +
                       ", restarts " + std::to_string(budget_.used()) + "/" +
                       std::to_string(rules_.max_restarts);
    for (const auto& [node, member] : members_) {
        line += ", " + member.offer.node_name;
        if (!member.seated && round_ > 0) line += " waits";
        if (member.absent()) line += " absent";
        if (member.done) line += " done";
        if (member.gone) line += " gone";
        if (member.unfit) line += " unfit";
        if (member.own_end && !member.unfit) line += " leaving";
        if (member.silent() && !member.absent()) line += " silent";
    }
    return line;
}

std::string_view Coordinator::name_of(State state) {
    switch (state) {
        case State::forming:
            return "forming";
        case State::running:
            return "running";
        case State::deciding:
            return "deciding";
        case State::stopping:
            return "stopping";
        case State::backing_off:
            return "backing off";
        case State::short_handed:
            return "short of nodes";
        case State::over:
            return "over";
    }
    return "?";
}

}  // namespace ddrun::rendezvous
