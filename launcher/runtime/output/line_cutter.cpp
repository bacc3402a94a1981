#include "launcher/runtime/output/line_cutter.hpp"

namespace ddrun::launcher {

namespace {

// 512 streams that once saw a long line must not keep its memory.
constexpr std::size_t kept_capacity = 4096;

}  // namespace

void LineCutter::clear_carry() {
    carry_.clear();
    if (carry_.capacity() > kept_capacity) carry_.shrink_to_fit();
}

}  // namespace ddrun::launcher
