#include "worker_sdk/core/subject.hpp"

namespace ddrun::detail {

std::string Subject::words() const {
    std::string text = verb;
    if (!key.empty()) text += " '" + key + "'";
    if (more_keys > 0) text += " and " + std::to_string(more_keys) + " more keys";
    return text;
}

}  // namespace ddrun::detail
