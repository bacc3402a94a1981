#include "rendezvous/transport/openssl.hpp"

#include <dlfcn.h>

#include <string>

namespace ddrun::rendezvous {

void* openssl_function(const char* name) {
    constexpr auto file = "libssl.so.3";  // it brings libcrypto.so.3 along
    static void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void* const function = library == nullptr ? nullptr : ::dlsym(library, name);
    if (function != nullptr) return function;
    const char* why = ::dlerror();
    throw NoOpenSsl(std::string("OpenSSL 3 cannot be used (") + (why != nullptr ? why : file) +
                    "): install it on this node, or give --insecure to all nodes");
}

}  // namespace ddrun::rendezvous
