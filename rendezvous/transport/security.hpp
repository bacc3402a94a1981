#pragma once

#include <array>
#include <stdexcept>
#include <string>

// How the peers of a connection prove that they belong to the job, and what is said where they
// cannot.
namespace ddrun::rendezvous {

using Key = std::array<unsigned char, 32>;

struct Security {
    enum class Mode {
        plain,  // --insecure: neither authentication nor encryption
        psk,    // both know `key`
        munge,  // both are of one user, as the munge daemons of their machines say
    };
    Mode mode = Mode::psk;
    Key key{};                 // psk: from the job's secret (secret.hpp)
    std::string munge_socket;  // munge: of the daemon; empty: where munge was built to look
};

// The peer has another secret, or none where we have one: trying again cannot help. The words name
// the peer and what to do, and nothing of a secret.
struct NotAuthorised : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What is there does not speak our protocol, or could not be spoken to in it. Another try may find
// it otherwise.
struct Foreign : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace ddrun::rendezvous
