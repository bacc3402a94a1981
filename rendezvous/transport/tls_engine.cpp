#include "rendezvous/transport/tls_engine.hpp"

#include "rendezvous/transport/openssl.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

namespace ddrun::rendezvous {
namespace {

struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

TlsEngine& engine_of(const SSL* ssl) {
    return *static_cast<TlsEngine*>(SSL_get_app_data(ssl));
}

SSL_SESSION* session_of(SSL* ssl, const Key& key) {
    constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_SESSION* session = SSL_SESSION_new();
    if (session == nullptr) return nullptr;
    if (SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return nullptr;
}

constexpr const char* same_secret =
    ": all nodes of a job need the same secret (--secret-file, DDRUN_SECRET or "
    "~/.config/ddrun/secret)";

}  // namespace

// What OpenSSL calls back.
struct TlsCallbacks {
    // Client: which key we have. May be called twice for one handshake.
    static int use_session(SSL* ssl, const EVP_MD*, const unsigned char** identity,
                           std::size_t* size, SSL_SESSION** session) {
        const auto& secret = engine_of(ssl).secret_;
        *session = session_of(ssl, secret.key);
        *identity = reinterpret_cast<const unsigned char*>(secret.identity.data());
        *size = secret.identity.size();
        return *session != nullptr ? 1 : 0;
    }
    // Server: the key of that client; null: unknown.
    static int find_session(SSL* ssl, const unsigned char* identity, std::size_t size,
                            SSL_SESSION** session) {
        const auto& secret = engine_of(ssl).secret_;
        *session = nullptr;
        if (secret.identity != std::string_view(reinterpret_cast<const char*>(identity), size))
            return 1;
        *session = session_of(ssl, secret.key);
        return *session != nullptr ? 1 : 0;
    }
    static int read_bytes(BIO* bio, char* into, int size) {
        auto& engine = *static_cast<TlsEngine*>(BIO_get_data(bio));
        BIO_clear_retry_flags(bio);
        const std::string_view rest = std::string_view(engine.input_).substr(engine.consumed_);
        if (rest.empty()) {
            BIO_set_retry_read(bio);
            return -1;
        }
        const std::size_t taken = std::min(rest.size(), static_cast<std::size_t>(size));
        std::memcpy(into, rest.data(), taken);
        engine.consumed_ += taken;
        return static_cast<int>(taken);
    }
    static int write_bytes(BIO* bio, const char* bytes, int size) {
        BIO_clear_retry_flags(bio);
        static_cast<TlsEngine*>(BIO_get_data(bio))
            ->output_.append(bytes, static_cast<std::size_t>(size));
        return size;
    }
    static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH; }
};

namespace {

// The engine as OpenSSL's source and sink of bytes: its own memory BIOs keep the largest size they
// ever had.
const BIO_METHOD* engine_bio() {
    static BIO_METHOD* const method = [] {
        BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ddrun");
        if (made == nullptr) throw std::bad_alloc();
        BIO_meth_set_read(made, TlsCallbacks::read_bytes);
        BIO_meth_set_write(made, TlsCallbacks::write_bytes);
        BIO_meth_set_ctrl(made, TlsCallbacks::control);
        return made;
    }();
    return method;
}

Context make_context(const SSL_METHOD* method) {
    Context context(SSL_CTX_new(method));
    if (!context) throw std::bad_alloc();
    SSL_CTX* const raw = context.get();
    SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
    // A key belongs to one hash. With another cipher a server would fall back to certificates.
    SSL_CTX_set_ciphersuites(raw, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set1_groups_list(raw, "X25519:P-256");
    SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(raw, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(raw, 0);
    SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_psk_use_session_callback(raw, TlsCallbacks::use_session);
    SSL_CTX_set_psk_find_session_callback(raw, TlsCallbacks::find_session);
    return context;
}

SSL_CTX* context_of(TlsEngine::Side side) {
    if (side == TlsEngine::Side::client) {
        static const Context client = [] {
            Context context = make_context(TLS_client_method());
            // A server that shows a certificate instead of knowing the key is nobody.
            SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
            return context;
        }();
        return client.get();
    }
    static const Context server = make_context(TLS_server_method());
    return server.get();
}

// Alerts of the peer arrive as reasons of their own.
constexpr int alert_reason(Alert alert) {
    return SSL_AD_REASON_OFFSET + static_cast<int>(alert);
}

[[noreturn]] void refuse_by_client(int reason) {
    switch (reason) {
        case SSL_AD_REASON_OFFSET + SSL_AD_ILLEGAL_PARAMETER:  // what OpenSSL 3.0 sends
        case SSL_AD_REASON_OFFSET + SSL_AD_DECRYPT_ERROR:      // what RFC 8446 asks for
            throw NotAuthorised(std::string("it has another secret") + same_secret);
        case alert_reason(Alert::insufficient_security):
            throw NotAuthorised(
                "it runs with --insecure and this node does not: give --insecure to all nodes or "
                "to none");
        case alert_reason(Alert::unknown_identity):
            throw NotAuthorised(
                "it uses another kind of secret than this node (a shared secret on one side, munge "
                "on the other): give all nodes the same --secret-file or DDRUN_SECRET, or none");
        case alert_reason(Alert::access_denied):
            throw NotAuthorised(
                "it does not accept the munge credential of this node: both have to run as the "
                "same user, with one munge key and clocks that agree");
        default:
            throw Foreign("what answers there is no ddrun rendezvous (TLS handshake failed)");
    }
}

[[noreturn]] void refuse_by_server(int reason) {
    switch (reason) {
        case SSL_R_BINDER_DOES_NOT_VERIFY:
            throw NotAuthorised(std::string("it has another secret") + same_secret);
        default:
            throw Foreign("speaks TLS, but is no ddrun of this job");
    }
}

}  // namespace

void TlsEngine::Free::operator()(ssl_st* ssl) const {
    SSL_free(ssl);
}

TlsEngine::TlsEngine(Side side, PreSharedKey secret)
    : side_(side), secret_(std::move(secret)), ssl_(SSL_new(context_of(side))) {
    BIO* const bio = ssl_ ? BIO_new(engine_bio()) : nullptr;
    if (bio == nullptr) throw std::bad_alloc();
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), this);
    side == Side::client ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
}

TlsEngine::~TlsEngine() = default;

void TlsEngine::receive(std::string_view bytes) {
    input_.erase(0, std::exchange(consumed_, 0));
    input_.append(bytes);
}

std::string TlsEngine::take_output() {
    return std::exchange(output_, {});
}

bool TlsEngine::handshake() {
    ERR_clear_error();
    if (!check(SSL_do_handshake(ssl_.get()))) return false;
    // No key was used: somebody with a certificate that this machine trusts.
    if (SSL_session_reused(ssl_.get()) != 1) fail();
    return true;
}

std::size_t TlsEngine::read(std::span<char> into) {
    ERR_clear_error();
    const int size = static_cast<int>(std::min<std::size_t>(into.size(), INT_MAX));
    const int result = SSL_read(ssl_.get(), into.data(), size);
    return check(result) ? static_cast<std::size_t>(result) : 0;
}

void TlsEngine::write(std::string_view bytes) {
    ERR_clear_error();
    while (!bytes.empty()) {
        const int size = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
        const int written = SSL_write(ssl_.get(), bytes.data(), size);
        if (!check(written)) fail();
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

bool TlsEngine::check(int result) {
    if (consumed_ == input_.size()) {
        input_ = {};  // a connection at rest holds no memory
        consumed_ = 0;
    }
    if (result > 0) return true;
    if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return false;
    fail();
}

void TlsEngine::fail() {
    const int reason = ERR_GET_REASON(ERR_peek_error());
    const bool shaking_hands = SSL_is_init_finished(ssl_.get()) == 0;
    ERR_clear_error();
    if (!shaking_hands) throw Foreign("the TLS connection was broken or ended by the peer");
    side_ == Side::client ? refuse_by_client(reason) : refuse_by_server(reason);
}

std::string alert_record(Alert alert) {
    constexpr char fatal = 2;
    return {'\x15', '\x03', '\x03', '\0', '\2', fatal, static_cast<char>(alert)};
}

}  // namespace ddrun::rendezvous
