#pragma once

#include "rendezvous/transport/security.hpp"

#include <optional>
#include <stdexcept>
#include <string>

// Where the secret of a job comes from.
namespace ddrun::rendezvous {

constexpr std::size_t min_secret_characters = 16;
constexpr std::size_t max_secret_bytes = 4096;

// What was asked for; values come from the caller, files are read here.
struct SecretSources {
    std::optional<std::string> file;      // --secret-file, DDRUN_SECRET_FILE
    std::optional<std::string> variable;  // DDRUN_SECRET
    std::string user_file;                // see user_secret_file; empty: no home
    bool insecure = false;                // --insecure
};

// No secret, or one that cannot be used: a usage error, in words that never hold the secret.
struct NoSecret : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct FoundSecret {
    Security security;
    std::string origin;  // "--secret-file", "DDRUN_SECRET", the path; empty: insecure
};
// First hit wins: file, variable, the user's file. A source that is there and not usable is an
// error, not skipped. Throws NoSecret.
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
