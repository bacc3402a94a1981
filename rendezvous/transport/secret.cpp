#include "rendezvous/transport/secret.hpp"

#include "rendezvous/transport/openssl.hpp"

#include "rendezvous/platform/random.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

namespace ddrun::rendezvous {
namespace {

constexpr mode_t others = S_IRWXG | S_IRWXO;

std::string error_words(int number) {
    return std::generic_category().message(number);
}

std::string checked(std::string secret, const std::string& origin) {
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.size() < min_secret_characters) {
        throw NoSecret(origin + ": the secret has " + std::to_string(secret.size()) +
                       " characters; at least " + std::to_string(min_secret_characters) +
                       " are needed (ddrun --make-secret makes a good one)");
    }
    if (secret.size() > max_secret_bytes) {
        throw NoSecret(origin + ": the secret is longer than " + std::to_string(max_secret_bytes) +
                       " bytes");
    }
    return secret;
}

struct SecretFile {
    std::string secret;
    bool others_can_read = false;
};

// nullopt: there is no such file.
std::optional<SecretFile> read_secret(const std::string& path, const std::string& origin) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) {
        throw NoSecret(origin + ": cannot read " + path + ": " + error_words(errno));
    }
    if (!S_ISREG(facts.st_mode)) throw NoSecret(origin + ": " + path + " is not a file");
    std::string text(max_secret_bytes + 3, '\0');  // with an end of line
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    if (got < 0) throw NoSecret(origin + ": cannot read " + path + ": " + error_words(errno));
    text.resize(static_cast<std::size_t>(got));
    return SecretFile{checked(std::move(text), origin), (facts.st_mode & others) != 0};
}

FoundSecret found(const std::string& secret, std::string origin) {
    FoundSecret result;
    result.security.key = key_of(secret);
    result.origin = std::move(origin);
    return result;
}

FoundSecret in_named_file(const std::string& path) {
    const auto file = read_secret(path, "--secret-file");
    if (!file) throw NoSecret("--secret-file: there is no file " + path);
    FoundSecret result = found(file->secret, "--secret-file");
    if (file->others_can_read) {
        result.warning = "--secret-file: other users of this machine can read " + path;
    }
    return result;
}

std::optional<FoundSecret> in_user_file(const std::string& path) {
    if (path.empty()) return std::nullopt;
    const auto file = read_secret(path, path);
    if (!file) return std::nullopt;
    if (file->others_can_read) {
        throw NoSecret("other users can read " + path + ": chmod 600 it, or make a new one");
    }
    return found(file->secret, path);
}

}  // namespace

FoundSecret find_secret(const SecretSources& sources) {
    FoundSecret without_key;
    if (sources.insecure) {
        without_key.security.mode = Security::Mode::plain;
        return without_key;
    }
    if (sources.file) return in_named_file(*sources.file);
    if (sources.variable) return found(checked(*sources.variable, "DDRUN_SECRET"), "DDRUN_SECRET");
    const std::string objection = sources.munge_objection(sources.munge_socket);
    if (objection.empty()) {
        without_key.security.mode = Security::Mode::munge;
        without_key.security.munge_socket = sources.munge_socket;
        without_key.origin = "munge";
        return without_key;
    }
    if (auto of_user = in_user_file(sources.user_file)) return *std::move(of_user);
    throw NoSecret(
        "several nodes need a secret that they share, so that nobody else can join. Do one of:\n"
        "  ddrun --make-secret           once; nodes with a shared home directory then find it\n"
        "  DDRUN_SECRET=... ddrun ...    or --secret-file=FILE, the same on all nodes\n"
        "  ddrun --insecure ...          without any protection, on a network you trust\n"
        "munge would serve too, but cannot be used here: " +
        objection);
}

Key key_of(const std::string& secret) {
    struct Free {
        void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
        void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
    };
    const std::unique_ptr<EVP_KDF, Free> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
    const std::unique_ptr<EVP_KDF_CTX, Free> context(EVP_KDF_CTX_new(kdf.get()));
    std::string digest = "SHA256", salt = "ddrun rendezvous", info = "tls psk 1", input = secret;
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, input.data(), input.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
        OSSL_PARAM_construct_end()};
    Key key{};
    if (!context || EVP_KDF_derive(context.get(), key.data(), key.size(), parameters) != 1) {
        throw std::runtime_error("OpenSSL has no HKDF-SHA256");
    }
    return key;
}

std::string user_secret_file(const std::optional<std::string>& config_home,
                             const std::optional<std::string>& home) {
    if (config_home && config_home->starts_with('/')) return *config_home + "/ddrun/secret";
    return home && home->starts_with('/') ? *home + "/.config/ddrun/secret" : std::string();
}

bool make_secret(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const UniqueFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file && errno == EEXIST) return false;
    const std::string secret = detail::random_hex_128() + detail::random_hex_128() + "\n";
    const auto size = static_cast<ssize_t>(secret.size());
    if (!file || ::write(file.get(), secret.data(), secret.size()) != size ||
        ::fsync(file.get()) != 0) {
        const int number = errno;
        if (file) ::unlink(path.c_str());
        throw std::system_error(number, std::generic_category(), path);
    }
    return true;
}

}  // namespace ddrun::rendezvous
