#pragma once

#include "worker_sdk/core/agent_link.hpp"

namespace ddrun::detail {

// Throws `failure` as the public exception of its kind.
[[noreturn]] void throw_failure(const Failure& failure);

}  // namespace ddrun::detail
