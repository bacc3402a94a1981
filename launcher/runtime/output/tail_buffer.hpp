#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun::launcher {

// The last bytes of a stream, kept raw and cut into lines only when somebody asks: a stream at full
// speed pays one small copy a read. Memory grows up to `capacity` and no further. Pure.
class TailBuffer {
  public:
    explicit TailBuffer(std::size_t capacity) : capacity_(capacity) {}

    void add(std::string_view bytes);
    void clear();  // also gives the memory back
    [[nodiscard]] bool empty() const { return ring_.empty(); }

    // The last lines, oldest first, without their ends; of a progress bar its last state. A line of
    // which the start is no longer kept begins with "...".
    [[nodiscard]] std::vector<std::string> lines(std::size_t most) const;

  private:
    [[nodiscard]] std::string joined() const;

    std::size_t capacity_;
    std::string ring_;
    std::size_t next_ = 0;  // where the next byte goes once the ring is full
    bool lost_start_ = false;
};

}  // namespace ddrun::launcher
