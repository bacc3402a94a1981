#include "launcher/config/base64.hpp"

namespace ddrun::launcher {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned group = 0;
        for (std::size_t j = i; j < i + 3; ++j) {
            group = group << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0u);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            text += i + j <= bytes.size() ? digits[group >> (18 - 6 * j) & 63] : '=';
        }
    }
    return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
    std::string bytes;
    unsigned group = 0;
    std::size_t count = 0, padding = 0;
    for (const char c : text) {
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
        const std::size_t digit = digits.find(c);
        if (c != '=' && (digit == digits.npos || padding > 0)) return std::nullopt;
        if (c == '=') ++padding;
        group = group << 6 | (c == '=' ? 0u : static_cast<unsigned>(digit));
        if (++count % 4 != 0) continue;
        for (int shift = 16; shift >= 0; shift -= 8)
            bytes += static_cast<char>(group >> shift & 255);
        group = 0;
    }
    if (count % 4 != 0 || padding > 2) return std::nullopt;
    bytes.resize(bytes.size() - padding);
    return bytes;
}

}  // namespace ddrun::launcher
