#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun::rendezvous {

// Cuts a byte stream into frames. Memory is bounded by `limit` plus one read; a length of 0 or over
// the limit makes it broken for good, since the stream cannot be re-synchronised.
class FrameReader {
  public:
    explicit FrameReader(std::size_t limit);

    void append(std::string_view bytes);
    // The next whole frame (type byte first), valid until the next call; nullopt: more bytes
    // needed.
    [[nodiscard]] std::optional<std::string_view> next();
    // For frames that have not begun to arrive: a peer has proven itself.
    void set_limit(std::size_t limit) { limit_ = limit; }
    [[nodiscard]] bool broken() const { return broken_; }

  private:
    std::size_t limit_;
    std::string buffer_;
    std::size_t consumed_ = 0;
    bool broken_ = false;
};

}  // namespace ddrun::rendezvous
