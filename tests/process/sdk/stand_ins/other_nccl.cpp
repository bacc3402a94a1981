// An NCCL of another version that makes ids quickly: its process and a count.
#include <unistd.h>

#include <cstdio>
#include <cstring>

struct Id {
    char bytes[128];
};

extern "C" int ncclGetVersion(int* version) {
    *version = 21805;
    return 0;
}
extern "C" int ncclGetUniqueId(Id* id) {
    static int made = 0;
    std::memset(id->bytes, 0, sizeof id->bytes);
    std::snprintf(id->bytes, sizeof id->bytes, "%d.%d", static_cast<int>(::getpid()), ++made);
    return 0;
}
extern "C" const char* ncclGetErrorString(int) {
    return "no error";
}
