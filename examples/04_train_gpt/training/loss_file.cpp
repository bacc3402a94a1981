#include "examples/04_train_gpt/training/loss_file.hpp"

#include "examples/04_train_gpt/setup_error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace train_gpt {
namespace {

namespace fs = std::filesystem;

// The step, if the line is one of ours.
std::optional<std::uint64_t> step_of(const std::string& line) {
    std::uint64_t step = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (error != std::errc{} || *rest != ' ') return std::nullopt;
    float loss = 0.0f;
    const char* end = line.data() + line.size();
    const auto [stop, loss_error] = std::from_chars(rest + 1, end, loss);
    if (loss_error != std::errc{} || stop != end) return std::nullopt;
    return step;
}

// Length of the leading lines that stay.
off_t kept_length(const fs::path& path, std::uint64_t first_step) {
    std::ifstream file(path, std::ios::binary);
    off_t length = 0;
    for (std::string line; std::getline(file, line) && !file.eof();) {
        const auto step = step_of(line);
        if (!step) {
            throw SetupError(path.string() + " holds something else than a loss curve (\"" +
                             line.substr(0, 40) + "\"): give another --loss-file");
        }
        if (*step >= first_step) break;
        length += static_cast<off_t>(line.size()) + 1;
    }
    return length;
}

}  // namespace

LossFile::LossFile(const fs::path& path, std::uint64_t first_step)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND) {
    if (::ftruncate(file_.get(), kept_length(path, first_step)) != 0) {
        throw_system_error("truncate", path);
    }
}

void LossFile::append(std::uint64_t step, float loss) {
    std::array<char, 64> line{};
    const int length =
        std::snprintf(line.data(), line.size(), "%llu %.9g\n",
                      static_cast<unsigned long long>(step), static_cast<double>(loss));
    file_.write_all({line.data(), static_cast<std::size_t>(length)});
}

}  // namespace train_gpt
