#include "rendezvous/transport/munge.hpp"

#include "rendezvous/transport/openssl.hpp"

#include "rendezvous/platform/random.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#ifdef DDRUN_MUNGE
#include <dlfcn.h>
#include <munge.h>
#include <unistd.h>

#include <cstdlib>
#endif

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t identity_bytes = 32;
constexpr std::size_t payload_bytes = identity_bytes + sizeof(Key);

std::string payload_of(const PreSharedKey& secret) {
    std::string payload = secret.identity;
    payload.append(reinterpret_cast<const char*>(secret.key.data()), secret.key.size());
    return payload;
}

PreSharedKey secret_of(std::string_view payload) {
    if (payload.size() != payload_bytes) {
        throw NotAuthorised("its munge credential was made for something else");
    }
    PreSharedKey secret;
    secret.identity = payload.substr(0, identity_bytes);
    std::memcpy(secret.key.data(), payload.data() + identity_bytes, secret.key.size());
    return secret;
}

}  // namespace

PreSharedKey random_key() {
    PreSharedKey secret;
    secret.identity = detail::random_hex_128();
    if (RAND_bytes(secret.key.data(), static_cast<int>(secret.key.size())) != 1) {
        throw std::runtime_error("OpenSSL has no random numbers");
    }
    return secret;
}

#ifdef DDRUN_MUNGE

namespace {

// The few functions of libmunge. Not linked, so that one ddrun runs everywhere and a job of one
// node does not load it.
struct Library {
    void* handle = ::dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
    decltype(&::munge_encode) encode = find<decltype(&::munge_encode)>("munge_encode");
    decltype(&::munge_decode) decode = find<decltype(&::munge_decode)>("munge_decode");
    decltype(&::munge_ctx_create) create = find<decltype(&::munge_ctx_create)>("munge_ctx_create");
    decltype(&::munge_ctx_destroy) destroy =
        find<decltype(&::munge_ctx_destroy)>("munge_ctx_destroy");
    decltype(&::munge_ctx_set) set = find<decltype(&::munge_ctx_set)>("munge_ctx_set");
    decltype(&::munge_ctx_strerror) words =
        find<decltype(&::munge_ctx_strerror)>("munge_ctx_strerror");
    decltype(&::munge_strerror) error_words = find<decltype(&::munge_strerror)>("munge_strerror");

    [[nodiscard]] bool is_whole() const {
        return encode && decode && create && destroy && set && words && error_words;
    }
    template <typename Function>
    Function find(const char* name) const {
        return handle ? reinterpret_cast<Function>(::dlsym(handle, name)) : nullptr;
    }
};

const Library& library_found() {
    static const Library found;
    return found;
}

const Library& library() {
    if (!library_found().is_whole()) throw std::runtime_error("there is no libmunge.so.2");
    return library_found();
}

struct FreeContext {
    void operator()(munge_ctx_t context) const { library().destroy(context); }
};
using Context = std::unique_ptr<std::remove_pointer_t<munge_ctx_t>, FreeContext>;
struct FreeBytes {
    void operator()(void* bytes) const { std::free(bytes); }
};

Context make_context(const std::string& socket) {
    Context context(library().create());
    if (!context) throw std::bad_alloc();
    if (!socket.empty()) library().set(context.get(), MUNGE_OPT_SOCKET, socket.c_str());
    return context;
}

std::string words_of(munge_err_t error, const Context& context) {
    const char* words = library().words(context.get());
    return words != nullptr ? words : library().error_words(error);
}

}  // namespace

std::string encode_credential(const PreSharedKey& secret, const std::string& socket) {
    const Context context = make_context(socket);
    library().set(context.get(), MUNGE_OPT_UID_RESTRICTION, ::geteuid());
    const std::string payload = payload_of(secret);
    char* made = nullptr;
    const munge_err_t error =
        library().encode(&made, context.get(), payload.data(), static_cast<int>(payload.size()));
    const std::unique_ptr<char, FreeBytes> credential(made);
    if (error != EMUNGE_SUCCESS) throw std::runtime_error("munge: " + words_of(error, context));
    return credential.get();
}

PreSharedKey decode_credential(const std::string& credential, const std::string& socket) {
    if (!library_found().is_whole()) throw NotAuthorised("it uses munge, which is not here");
    const Context context = make_context(socket);
    void* bytes = nullptr;
    int size = 0;
    uid_t user = 0;
    gid_t group = 0;
    const munge_err_t error =
        library().decode(credential.c_str(), context.get(), &bytes, &size, &user, &group);
    // A credential that is refused for its age still has its bytes.
    const std::unique_ptr<void, FreeBytes> payload(bytes);
    if (error != EMUNGE_SUCCESS) {
        throw NotAuthorised("its munge credential is refused: " + words_of(error, context));
    }
    // The restriction to a user binds who may open it. Who made it is this:
    if (user != ::geteuid()) {
        throw NotAuthorised("its munge credential is of user " + std::to_string(user) +
                            ", this rendezvous runs as user " + std::to_string(::geteuid()));
    }
    return secret_of({static_cast<const char*>(bytes), static_cast<std::size_t>(size)});
}

std::string munge_objection(const std::string& socket) try {
    (void)encode_credential(random_key(), socket);
    return {};
} catch (const std::runtime_error& error) {
    return error.what();
}

#else

namespace {
constexpr const char* not_built = "this ddrun was built without munge";
}  // namespace

std::string encode_credential(const PreSharedKey& secret, const std::string&) {
    (void)payload_of(secret);
    throw std::runtime_error(not_built);
}

PreSharedKey decode_credential(const std::string&, const std::string&) {
    (void)secret_of({});
    throw NotAuthorised(not_built);
}

std::string munge_objection(const std::string&) {
    return not_built;
}

#endif

}  // namespace ddrun::rendezvous
