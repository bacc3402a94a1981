#include "launcher/runtime/small_file.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace ddrun::launcher {

std::string read_small_file(const std::string& path) {
    constexpr std::size_t limit = 64u << 10;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    std::string chunk(4096, '\0');
    while (file && text.size() < limit) {
        const ssize_t size = ::read(file.get(), chunk.data(), chunk.size());
        if (size <= 0) {
            break;
        }
        text.append(chunk, 0, static_cast<std::size_t>(size));
    }
    return text;
}

std::optional<std::int64_t> leading_number(const std::string& text) {
    const std::size_t start = text.find_first_not_of(" \t");
    std::int64_t number = 0;
    if (start == std::string::npos ||
        std::from_chars(text.data() + start, text.data() + text.size(), number).ec != std::errc()) {
        return std::nullopt;
    }
    return number;
}

}  // namespace ddrun::launcher
