#include "rendezvous/protocol/frame_reader.hpp"

#include "rendezvous/protocol/bytes.hpp"

namespace ddrun::rendezvous {
namespace {

// After one large frame the buffer is given back; below this it is kept for the next.
constexpr std::size_t kept_capacity = 64u << 10;

}  // namespace

FrameReader::FrameReader(std::size_t limit) : limit_(limit) {}

void FrameReader::append(std::string_view bytes) {
    if (broken_) return;
    buffer_.erase(0, consumed_);
    consumed_ = 0;
    if (buffer_.empty() && buffer_.capacity() > kept_capacity) buffer_.shrink_to_fit();
    buffer_.append(bytes);
}

std::optional<std::string_view> FrameReader::next() {
    const std::string_view rest = std::string_view(buffer_).substr(consumed_);
    if (broken_ || rest.size() < length_bytes) return std::nullopt;
    const std::size_t length = ByteReader(rest).number<std::uint32_t>();
    if (length == 0 || length > limit_) {
        broken_ = true;
        buffer_ = {};
        consumed_ = 0;
        return std::nullopt;
    }
    if (rest.size() - length_bytes < length) return std::nullopt;
    consumed_ += length_bytes + length;
    return rest.substr(length_bytes, length);
}

}  // namespace ddrun::rendezvous
