#include "launcher/runtime/refusal.hpp"

#include <cstring>

namespace ddrun::launcher {

std::string error_text(int error_number) {
    // strerror() may translate, which loads locale data; the plain text is enough and never fails.
    const char* text = ::strerrordesc_np(error_number);
    return text != nullptr ? text : "error " + std::to_string(error_number);
}

}  // namespace ddrun::launcher
