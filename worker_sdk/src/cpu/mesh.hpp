#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/fnv1a.hpp"
#include "rendezvous/protocol/time.hpp"
#include "worker_sdk/src/cpu/patience.hpp"

#include <ddrun/store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ddrun::detail {

// TCP connections between the ranks of the round, made when they are first needed. Every rank
// listens on the address of its node from which the master is reached, at a port of the kernel's
// choice, and publishes both in the store with a random key that a caller must show: who cannot
// read the store of the job is turned away.
//
// Any thread. Throws WireTrouble, Error{system}, or what the store throws.
class Mesh {
  public:
    Mesh(Store& store, int rank, const std::string& master_addr);

    // A connection from here to `rank`, for `purpose`; non-blocking, TCP_NODELAY.
    [[nodiscard]] UniqueFd connect(int rank, std::uint64_t purpose, const Patience& patience);
    // The one that `rank` has made to here for `purpose`.
    [[nodiscard]] UniqueFd accept(int rank, std::uint64_t purpose, const Patience& patience);

  private:
    static constexpr std::size_t key_bytes = 16;
    static constexpr std::size_t hello_bytes = 40;
    struct Caller {  // has not said all of its hello yet
        UniqueFd socket;
        std::array<char, hello_bytes> hello{};
        std::size_t heard = 0;
        TimePoint deadline;
    };
    using Awaited = std::pair<int, std::uint64_t>;

    void listen_towards(const std::string& master_addr);
    void take_callers(const Patience& patience);
    void hear(Caller& caller);
    void admit(Caller& caller);
    [[nodiscard]] std::string address_of(int rank, const Patience& patience);

    Store& store_;
    int rank_;
    std::string key_;
    UniqueFd listener_;
    std::string published_;
    std::mutex mutex_;  // the rest
    std::vector<Caller> callers_;
    std::map<Awaited, std::vector<UniqueFd>> waiting_;
    std::map<int, std::string> addresses_;
};

// A number for a purpose that all ranks name alike.
[[nodiscard]] inline std::uint64_t purpose_of(const std::string& words) {
    return fnv1a(words);
}

}  // namespace ddrun::detail
