#pragma once

#include "worker_sdk/core/agent_link.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace ddrun::detail {

// A failure as one rank tells it to the others over the store.
[[nodiscard]] std::string encode_failure(const Failure& failure);
// nullopt: it was not written by encode_failure().
[[nodiscard]] std::optional<Failure> decode_failure(std::string_view bytes);

}  // namespace ddrun::detail
