#pragma once

#include "rendezvous/protocol/time.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace ddrun::detail {

// Why a connection between two ranks cannot be used, before it is put into words.
struct WireTrouble : std::runtime_error {
    enum class Kind { closed, timed_out, stopped };
    WireTrouble(Kind what, int peer, const std::string& words)
        : std::runtime_error(words), kind(what), rank(peer) {}
    Kind kind;
    int rank;  // of the world: whom this rank waited for
};

// Until when a wait on the wire may last, and whether it has become pointless.
struct Patience {
    TimePoint deadline;
    std::function<bool()> is_stopped;  // looked at after every glance

    // How long poll() may wait until the next look at both, in milliseconds.
    [[nodiscard]] int glance() const;
    // Throws WireTrouble about `rank` where the wait is to end; `late` are the words for a deadline
    // that has passed.
    void check(int rank, const char* late) const;
};

}  // namespace ddrun::detail
