// A group over nodes breaks: finding out why, and giving one answer on every rank.
#include "worker_sdk/core/failure_text.hpp"
#include "worker_sdk/core/words.hpp"
#include "worker_sdk/src/cpu/joined_group.hpp"
#include "worker_sdk/src/failure.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace ddrun::detail {
namespace {

// For the word of whoever knows better: another rank, or the agent.
constexpr auto word_patience = std::chrono::seconds(1);

TimePoint clock_now() {
    return std::chrono::steady_clock::now();
}

}  // namespace

bool JoinedGroup::is_broken() const {
    return fault_ != 0 || (local_ && local_->fault().kind != Fault::Kind::none);
}

void JoinedGroup::fail(const Call& call, const WireTrouble& trouble) {
    if (const Fault fault = unpack(fault_); fault.kind != Fault::Kind::none)
        fail(by_fault(call, fault));
    if (trouble.kind == WireTrouble::Kind::timed_out) fail(late(call, trouble.rank));
    if (trouble.kind == WireTrouble::Kind::stopped && is_broken())
        fail(by_fault(call, local_->fault()));
    fail(closed_by(call, trouble));
}

void JoinedGroup::fail(const CallMismatch& mismatch, const Call& call) {
    const bool first = world_rank() < mismatch.rank;
    const std::array<Call, 2> calls = {first ? call : mismatch.theirs,
                                       first ? mismatch.theirs : call};
    const std::array<int, 2> ranks = {std::min(world_rank(), mismatch.rank),
                                      std::max(world_rank(), mismatch.rank)};
    fail({ErrorKind::desynchronised, -1, disagreement(calls, ranks).value_or("")});
}

void JoinedGroup::fail(Failure failure) {
    failure = first_word(failure);
    const auto kind = failure.kind == ErrorKind::timed_out    ? Fault::Kind::timed_out
                      : failure.kind == ErrorKind::agent_lost ? Fault::Kind::agent_lost
                                                              : Fault::Kind::peer_lost;
    break_up({kind, failure.rank, world_rank()});
    const bool by_peer =
        failure.kind == ErrorKind::peer_lost || failure.kind == ErrorKind::timed_out;
    if (by_peer && failure.rank != world_rank()) hooks_.blame(failure.rank, failure.words);
    broken_ = failure;
    throw_failure(failure);
}

Failure JoinedGroup::by_fault(const Call& call, const Fault& fault) {
    return failure_of(fault, call, {}, hooks_.cause(), world_rank());
}

// A connection ends because its rank died, or because that rank heard of another's death first:
// then it, or the agent, says so.
Failure JoinedGroup::closed_by(const Call& call, const WireTrouble& trouble) {
    const std::string prefix = describe(call) + ": ";
    const Failure own{
        ErrorKind::peer_lost, trouble.rank,
        prefix + "rank " + std::to_string(trouble.rank) + " is gone (" + trouble.what() + ")"};
    try {
        const auto word = decode_failure(
            store_.get(key("failure"), std::chrono::duration_cast<Store::Timeout>(word_patience)));
        return word.value_or(own);
    } catch (const PeerLost& error) {
        return {ErrorKind::peer_lost, error.rank(), prefix + error.what()};
    } catch (const Error&) {
        return own;
    }
}

void JoinedGroup::tell_arrival(const Call& call, Slice ranks) {
    for (std::size_t i = 0; i < ranks.count; ++i)
        (void)store_.async_set(key("at/" + std::to_string(ranks.first + i)),
                               std::to_string(call.sequence));
}

// Who has entered the call tells so; who has not in a while is missing.
Failure JoinedGroup::late(const Call& call, int waited_for) {
    const std::string prefix = describe(call) + ": ";
    std::vector<int> missing;
    try {
        tell_arrival(call, node_ranks(node_));  // those of this node have met
        const TimePoint end = clock_now() + word_patience;
        do {
            missing.clear();
            std::vector<Pending<std::optional<std::string>>> places;
            for (int rank = 0; rank < size(); ++rank)
                places.push_back(store_.async_find(key("at/" + std::to_string(rank))));
            for (std::size_t rank = 0; rank < places.size(); ++rank) {
                const auto place = places[rank].get();
                if (!place || *place != std::to_string(call.sequence))
                    missing.push_back(layout_.world_ranks[rank]);
            }
            if (!missing.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        } while (!missing.empty() && clock_now() < end);
    } catch (const PeerLost& error) {
        return {ErrorKind::peer_lost, error.rank(), prefix + error.what()};
    } catch (const Error& error) {
        return {error.kind(), -1, prefix + error.what()};
    }
    if (!missing.empty())
        return {ErrorKind::timed_out, missing.front(),
                prefix + rank_list(missing) + " did not arrive in time", missing};
    return {ErrorKind::timed_out,
            waited_for,
            prefix + "nothing came from rank " + std::to_string(waited_for) +
                " in time, though every rank is in the call: look at the network between the nodes",
            {waited_for}};
}

Failure JoinedGroup::first_word(const Failure& own) {
    try {
        const auto word =
            decode_failure(store_.compare_set(key("failure"), "", encode_failure(own)));
        return word.value_or(own);
    } catch (const Error&) {  // the round is over; what this rank saw is the reason as good as any
        return own;
    }
}

std::string JoinedGroup::key(const std::string& what) const {
    return "ddrun.group/" + layout_.name + "/" + what;
}

}  // namespace ddrun::detail
