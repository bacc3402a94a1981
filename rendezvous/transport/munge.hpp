#pragma once

#include "rendezvous/transport/tls_engine.hpp"

#include <string>
#include <string_view>

// The key of a connection, handed over through munge: the daemons of two machines vouch for the
// users of the two ends. libmunge is looked for when it is first needed; all of these may block for
// some seconds and may be called from any thread. `socket`: of the daemon; empty: the usual one.
namespace ddrun::rendezvous {

constexpr std::size_t max_credential_bytes = 2048;

// Why munge cannot be used here; empty: it can.
[[nodiscard]] std::string munge_objection(const std::string& socket);

// A fresh key under a random identity.
[[nodiscard]] PreSharedKey random_key();

// A credential that only processes of our own user can open. Throws std::runtime_error.
[[nodiscard]] std::string encode_credential(const PreSharedKey& secret, const std::string& socket);

// The key in it. Throws NotAuthorised where it was not made by our own user, is expired, or was
// shown before.
[[nodiscard]] PreSharedKey decode_credential(const std::string& credential,
                                             const std::string& socket);

}  // namespace ddrun::rendezvous
