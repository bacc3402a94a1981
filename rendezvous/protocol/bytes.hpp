#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Bytes for messages: fixed-width little-endian integers, and strings as u32 length + bytes. Used
// by the worker protocol and by the link between agent and keeper.
namespace ddrun::rendezvous {

constexpr std::size_t length_bytes = 4;

class ByteWriter {
  public:
    ByteWriter() = default;
    // Goes on behind these bytes.
    explicit ByteWriter(std::string bytes) : bytes_(std::move(bytes)) {}

    template <std::integral T>
    void number(T value) {
        const auto little_endian = bytes_of(value);
        bytes_.append(little_endian.data(), little_endian.size());
    }
    void boolean(bool value) { bytes_.push_back(value ? '\1' : '\0'); }
    void string(std::string_view text) {
        number(static_cast<std::uint32_t>(text.size()));
        bytes_.append(text);
    }

    [[nodiscard]] std::string take() { return std::move(bytes_); }
    // The bytes with their own length (u32) in front: a whole frame.
    [[nodiscard]] std::string take_frame() {
        ByteWriter head;
        head.number(static_cast<std::uint32_t>(bytes_.size()));
        bytes_.insert(0, head.bytes_);
        return std::move(bytes_);
    }

    // A frame among other bytes: what is written between the two calls.
    [[nodiscard]] std::size_t begin_frame() {
        bytes_.append(length_bytes, '\0');
        return bytes_.size();
    }
    void end_frame(std::size_t begin) {
        const auto length = bytes_of(static_cast<std::uint32_t>(bytes_.size() - begin));
        bytes_.replace(begin - length_bytes, length_bytes, length.data(), length.size());
    }

  private:
    template <std::integral T>
    static std::array<char, sizeof(T)> bytes_of(T value) {
        std::array<char, sizeof(T)> bytes;
        auto bits = static_cast<std::make_unsigned_t<T>>(value);
        for (char& byte : bytes) {
            byte = static_cast<char>(bits & 0xffu);
            bits = static_cast<std::make_unsigned_t<T>>(bits >> (sizeof(T) > 1 ? 8 : 0));
        }
        return bytes;
    }

    std::string bytes_;
};

// Reads what ByteWriter wrote. The first read past the end, or a value that cannot be, makes the
// reader fail for good: later reads give zeros and empty strings, so callers check once, at the
// end. Memory: a length is checked against what is there before anything is allocated.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    template <std::integral T>
    [[nodiscard]] T number() {
        if (!has(sizeof(T))) return 0;
        std::make_unsigned_t<T> bits = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            const auto byte = static_cast<std::uint8_t>(rest_[i]);
            bits = static_cast<std::make_unsigned_t<T>>(
                bits | (static_cast<std::make_unsigned_t<T>>(byte) << (8 * i)));
        }
        rest_.remove_prefix(sizeof(T));
        return static_cast<T>(bits);
    }
    // Only 0 and 1 are booleans.
    [[nodiscard]] bool boolean() {
        const auto value = number<std::uint8_t>();
        if (value > 1) fail();
        return value == 1;
    }
    // At most `limit` bytes.
    [[nodiscard]] std::string string(std::size_t limit = SIZE_MAX) {
        const std::size_t size = number<std::uint32_t>();
        if (size > limit || !has(size)) {
            fail();
            return {};
        }
        std::string text(rest_.substr(0, size));
        rest_.remove_prefix(size);
        return text;
    }
    // The count (u32) of a list whose elements take at least `least_bytes` each; 0 when that many
    // cannot be there.
    [[nodiscard]] std::size_t count(std::size_t least_bytes) {
        const std::size_t elements = number<std::uint32_t>();
        if (elements > rest_.size() / least_bytes) {
            fail();
            return 0;
        }
        return elements;
    }

    void fail() {
        failed_ = true;
        rest_ = {};
    }
    [[nodiscard]] bool failed() const { return failed_; }
    // Everything was read and nothing was wrong; bytes left over are an error too.
    [[nodiscard]] bool complete() const { return !failed_ && rest_.empty(); }

  private:
    bool has(std::size_t size) {
        if (!failed_ && size <= rest_.size()) return true;
        fail();
        return false;
    }

    std::string_view rest_;
    bool failed_ = false;
};

}  // namespace ddrun::rendezvous
