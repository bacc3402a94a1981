#include "worker_sdk/src/log_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ddrun::detail {
namespace {

constexpr mode_t file_mode = 0666;  // the umask decides

}  // namespace

std::string LogFile::open() {
    if (file_) return {};
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, file_mode));
    return file_ ? std::string() : path_.string() + ": " + std::strerror(errno);
}

void LogFile::append(std::string_view line) {
    if (const std::string problem = open(); !problem.empty()) return complain(problem);
    while (!line.empty()) {
        const ssize_t written = ::write(file_.get(), line.data(), line.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return complain(path_.string() + ": " + std::strerror(errno));
        line.remove_prefix(static_cast<std::size_t>(written));
    }
}

void LogFile::complain(const std::string& words) {
    if (complained_) return;
    complained_ = true;
    std::fprintf(stderr, "log lines are being lost: %s\n", words.c_str());
}

}  // namespace ddrun::detail
