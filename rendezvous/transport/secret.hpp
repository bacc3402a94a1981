#pragma once

#include "rendezvous/transport/munge.hpp"
#include "rendezvous/transport/security.hpp"

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

// Where the secret of a job comes from.
namespace ddrun::rendezvous {

constexpr std::size_t min_secret_characters = 16;
constexpr std::size_t max_secret_bytes = 4096;

// What was asked for; values come from the caller, files are read and munge is asked here.
struct SecretSources {
    std::optional<std::string> file;      // --secret-file, DDRUN_SECRET_FILE
    std::optional<std::string> variable;  // DDRUN_SECRET
    std::string user_file;                // see user_secret_file; empty: no home
    bool insecure = false;                // --insecure
    std::string munge_socket;             // as in Security
    // Why munge cannot be used, given its socket; empty: it can.
    std::function<std::string(const std::string&)> munge_objection = rendezvous::munge_objection;
};

// No secret, or one that cannot be used: a usage error, in words that never hold the secret.
struct NoSecret : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct FoundSecret {
    Security security;
    std::string origin;   // "--secret-file", "DDRUN_SECRET", "munge", a path; empty: insecure
    std::string warning;  // for the user, where something is not as it should be
};
// First hit wins: file, variable, munge, the user's file. A file or variable that is there and not
// usable is an error, not skipped; so is a user's file that others can read, while for a named file
// that is a warning (mounted secrets of containers are like that). Blocks as munge_objection does.
// Throws NoSecret.
[[nodiscard]] FoundSecret find_secret(const SecretSources& sources);

// The key of a connection from the job's secret: HKDF-SHA256 (RFC 5869).
[[nodiscard]] Key key_of(const std::string& secret);

// ~/.config/ddrun/secret, or below XDG_CONFIG_HOME; empty where neither is known.
[[nodiscard]] std::string user_secret_file(const std::optional<std::string>& config_home,
                                           const std::optional<std::string>& home);

// Makes the user's secret (0600, 256 random bits) with its folders. False: there is one already,
// which is left alone. Throws std::system_error.
[[nodiscard]] bool make_secret(const std::string& path);

}  // namespace ddrun::rendezvous
