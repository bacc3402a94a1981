#pragma once

#include "worker_sdk/core/agent_link.hpp"
#include "worker_sdk/core/collective_call.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ddrun::detail {

// Why a group is broken, in one word of shared memory, so that every rank gives the same answer.
struct Fault {
    enum class Kind : std::uint8_t {
        none,
        peer_lost,   // `rank` died, or its agent said so
        peer_left,   // `rank` destroyed its Worker
        timed_out,   // `by` gave up waiting for `rank`, the first of those missing
        agent_lost,  // the agent of this node is gone
    };
    Kind kind = Kind::none;
    int rank = -1;  // of the world, below 2^24
    int by = -1;
    bool operator==(const Fault&) const = default;
};

[[nodiscard]] std::uint64_t pack(const Fault& fault);
[[nodiscard]] Fault unpack(std::uint64_t word);

// What rank `self` should throw when `fault` ends `call`. `missing` are the ranks that have not
// arrived; `agent_words` what the agent said about the cause, possibly nothing.
[[nodiscard]] Failure failure_of(const Fault& fault, const Call& call,
                                 const std::vector<int>& missing, const std::string& agent_words,
                                 int self);

}  // namespace ddrun::detail
