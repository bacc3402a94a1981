#pragma once

#include "worker_sdk/core/agent_link.hpp"

namespace ddrun::detail {

// Throws `failure` as the public exception of its kind.
[[noreturn]] void throw_failure(const Failure& failure);

// The store holds at `key`, one of the SDK's own, what the SDK has not written.
[[noreturn]] void throw_foreign_value(const std::string& key);

}  // namespace ddrun::detail
