#include "worker_sdk/core/fault.hpp"

#include "worker_sdk/core/words.hpp"

namespace ddrun::detail {
namespace {

std::string rank_words(int rank) {
    return rank < 0 ? "a peer" : "rank " + std::to_string(rank);
}

std::string timed_out_words(const Fault& fault, const std::vector<int>& missing, int self) {
    const std::vector<int> late = missing.empty() ? std::vector<int>{fault.rank} : missing;
    const std::string giver =
        fault.by == self ? "" : " (" + rank_words(fault.by) + " gave up first)";
    return rank_list(late) + " did not arrive in time" + giver;
}

// 24 bits; -1 is 0.
std::uint64_t packed(int rank) {
    return static_cast<std::uint64_t>(rank + 1) & 0xff'ffff;
}
int unpacked(std::uint64_t bits) {
    return static_cast<int>(bits & 0xff'ffff) - 1;
}

}  // namespace

std::uint64_t pack(const Fault& fault) {
    return static_cast<std::uint64_t>(fault.kind) | packed(fault.rank) << 8 |
           packed(fault.by) << 32;
}

Fault unpack(std::uint64_t word) {
    return {static_cast<Fault::Kind>(word & 0xff), unpacked(word >> 8), unpacked(word >> 32)};
}

Failure failure_of(const Fault& fault, const Call& call, const std::vector<int>& missing,
                   const std::string& agent_words, int self) {
    const std::string prefix = describe(call) + ": ";
    const std::string detail = agent_words.empty() ? "" : " (" + agent_words + ")";
    switch (fault.kind) {
        case Fault::Kind::peer_lost:
            return {ErrorKind::peer_lost, fault.rank,
                    prefix + rank_words(fault.rank) + " is gone" + detail};
        case Fault::Kind::peer_left:
            return {ErrorKind::peer_lost, fault.rank,
                    prefix + rank_words(fault.rank) + " has ended its Worker and left the group"};
        case Fault::Kind::timed_out:
            return {ErrorKind::timed_out, fault.rank,
                    prefix + timed_out_words(fault, missing, self),
                    missing.empty() ? std::vector<int>{fault.rank} : missing};
        case Fault::Kind::agent_lost:
            return {ErrorKind::agent_lost, -1, prefix + "the agent of this node is gone" + detail};
        case Fault::Kind::none:
            break;
    }
    return {ErrorKind::system, -1, prefix + "the group is broken"};
}

}  // namespace ddrun::detail
