#include "worker_sdk/core/failure_text.hpp"

#include <charconv>

namespace ddrun::detail {
namespace {

// Takes a number and the character behind it off the front.
std::optional<int> take_number(std::string_view& text, char end) {
    int value = 0;
    const char* const last = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc() || rest == last || *rest != end) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
    return value;
}

constexpr int last_kind = static_cast<int>(ErrorKind::never_retry);

}  // namespace

// "<kind> <rank> <number of missing> <missing> ... <words>"
std::string encode_failure(const Failure& failure) {
    std::string text = std::to_string(static_cast<int>(failure.kind)) + " " +
                       std::to_string(failure.rank) + " " + std::to_string(failure.missing.size()) +
                       " ";
    for (const int rank : failure.missing) text += std::to_string(rank) + " ";
    return text + failure.words;
}

std::optional<Failure> decode_failure(std::string_view bytes) {
    const auto kind = take_number(bytes, ' ');
    const auto rank = kind ? take_number(bytes, ' ') : std::nullopt;
    const auto count = rank ? take_number(bytes, ' ') : std::nullopt;
    if (!count || *kind < 0 || *kind > last_kind || *count < 0) return std::nullopt;
    Failure failure{static_cast<ErrorKind>(*kind), *rank, {}, {}};
    for (int i = 0; i < *count; ++i) {
        const auto missing = take_number(bytes, ' ');
        if (!missing) return std::nullopt;
        failure.missing.push_back(*missing);
    }
    failure.words = bytes;
    return failure;
}

}  // namespace ddrun::detail
