#pragma once

#include "worker_sdk/core/device_choice.hpp"

namespace ddrun::detail {

// Asks the CUDA driver, if there is one: loaded by name at run time, never linked, so that the same
// program starts on a machine without it. Blocks for as long as the driver takes to initialise.
[[nodiscard]] DriverFacts ask_driver();

}  // namespace ddrun::detail
