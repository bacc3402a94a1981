#include "launcher/config/config.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ddrun::launcher {
namespace {

FileText read_all(int descriptor, std::size_t limit) {
    FileText file;
    char part[16384];
    for (;;) {
        const ssize_t count = ::read(descriptor, part, sizeof part);
        if (count == 0) return file;
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return {{}, std::strerror(errno)};
        file.text.append(part, static_cast<std::size_t>(count));
        if (file.text.size() > limit) {
            return {{}, "larger than " + std::to_string(limit / 1024) + " KiB"};
        }
    }
}

}  // namespace

FileText read_file(const std::string& path, std::size_t limit) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return {{}, std::strerror(errno)};
    FileText file = read_all(descriptor, limit);
    ::close(descriptor);
    return file;
}

}  // namespace ddrun::launcher
