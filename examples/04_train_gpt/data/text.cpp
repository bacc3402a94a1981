#include "examples/04_train_gpt/data/text.hpp"

#include "examples/04_train_gpt/setup_error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace train_gpt {
namespace {

namespace fs = std::filesystem;

SetupError cannot_read(const fs::path& path, const std::string& reason) {
    return SetupError("cannot read the text " + path.string() + ": " + reason);
}

std::string read_file(const fs::path& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || file.bad()) throw cannot_read(path, std::strerror(errno));
    return text;
}

std::vector<fs::path> list_files(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) try {
    if (!fs::is_directory(path)) return read_file(path);
    std::string text;
    for (const fs::path& file : list_files(path)) text += read_file(file);
    return text;
} catch (const fs::filesystem_error& error) {
    throw cannot_read(path, error.code().message());
}

}  // namespace train_gpt
