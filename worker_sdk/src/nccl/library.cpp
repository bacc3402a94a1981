#include "worker_sdk/src/nccl/library.hpp"

#include <ddrun/error.hpp>

#include <dlfcn.h>

#include <cstdlib>

namespace ddrun::detail {
namespace {

constexpr const char* usual_name = "libnccl.so.2";

std::string chosen_path() {
    const char* given = std::getenv("DDRUN_NCCL_LIBRARY");
    return given != nullptr && *given != '\0' ? given : usual_name;
}

template <typename Function>
void find(void* library, const std::string& path, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr)
        throw Error(ErrorKind::environment, path + " has no " + name +
                                                ": it is not NCCL 2.14 or newer; set "
                                                "DDRUN_NCCL_LIBRARY to one that is");
}

}  // namespace

const NcclLibrary& NcclLibrary::get() {
    static const NcclLibrary library;
    return library;
}

NcclLibrary::NcclLibrary() : path_(chosen_path()) {
    void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr)
        throw Error(ErrorKind::environment,
                    std::string("NCCL cannot be loaded: ") + ::dlerror() +
                        "; install it, or set DDRUN_NCCL_LIBRARY to its path");
    int (*get_version)(int*) = nullptr;
    find(library, path_, "ncclGetVersion", get_version);
    find(library, path_, "ncclGetUniqueId", get_unique_id_);
    find(library, path_, "ncclGetErrorString", get_error_string_);
    if (get_version(&version_) != 0)
        throw Error(ErrorKind::environment, path_ + " does not tell its version");
}

std::string NcclLibrary::make_id() const {
    Id id{};
    const int result = get_unique_id_(&id);
    if (result != 0)
        throw Error(ErrorKind::system,
                    std::string("NCCL makes no unique id: ") + get_error_string_(result) +
                        "; NCCL_DEBUG=WARN says more, NCCL_SOCKET_IFNAME chooses its interface");
    return {id.bytes, sizeof id.bytes};
}

}  // namespace ddrun::detail
