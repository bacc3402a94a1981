#include "examples/04_train_gpt/training/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace train_gpt {

FileDescriptor::FileDescriptor(const std::filesystem::path& path, int flags)
    : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw_system_error("open", path);
}

FileDescriptor::~FileDescriptor() {
    ::close(descriptor_);
}

void FileDescriptor::write_all(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_system_error("write", path_);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

void FileDescriptor::sync() {
    if (::fsync(descriptor_) != 0) throw_system_error("sync", path_);
}

void throw_system_error(const char* verb, const std::filesystem::path& path) {
    throw std::system_error(errno, std::generic_category(),
                            std::string("cannot ") + verb + " " + path.string());
}

}  // namespace train_gpt
