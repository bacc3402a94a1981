#include "examples/04_train_gpt/training/durable_file.hpp"

#include "examples/04_train_gpt/training/file_descriptor.hpp"

#include <fcntl.h>

namespace train_gpt {
namespace {

namespace fs = std::filesystem;

void write_and_sync(const fs::path& path, std::string_view bytes) {
    FileDescriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
    file.write_all(bytes);
    file.sync();
}

}  // namespace

fs::path temporary_name(const fs::path& path) {
    return path.string() + ".tmp";
}

void write_durably(const fs::path& path, std::string_view bytes) {
    const fs::path temporary = temporary_name(path);
    try {
        write_and_sync(temporary, bytes);
        fs::rename(temporary, path);
    } catch (...) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        throw;
    }
    const fs::path folder = path.parent_path();
    FileDescriptor(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace train_gpt
