#include "worker_sdk/src/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace ddrun::detail {
namespace {

constexpr const char* driver_library = "libcuda.so.1";

// The two calls that are needed, as the driver declares them (0 is success).
using Init = int (*)(unsigned int flags);
using DeviceCount = int (*)(int* count);

// dlsym gives an object pointer for a function.
template <typename Function>
Function function_of(void* library, const char* name) {
    return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

DriverFacts ask_driver() {
    DriverFacts facts;
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible = visible;
    // Never closed: a driver does not survive being unloaded.
    void* const library = ::dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
    const auto init = library == nullptr ? nullptr : function_of<Init>(library, "cuInit");
    const auto count =
        library == nullptr ? nullptr : function_of<DeviceCount>(library, "cuDeviceGetCount");
    if (init == nullptr || count == nullptr) {
        facts.problem = "no CUDA driver";
        return facts;
    }
    if (const int error = init(0); error != 0)
        facts.problem = "the CUDA driver does not start (error " + std::to_string(error) + ")";
    else if (const int later = count(&facts.device_count); later != 0)
        facts.problem = "the CUDA driver lists no devices (error " + std::to_string(later) + ")";
    return facts;
}

}  // namespace ddrun::detail
