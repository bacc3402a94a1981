#pragma once

#include "launcher/core/summary.hpp"

#include <string>

namespace ddrun::launcher {

// The one thing most worth knowing or trying after this end; empty when there is nothing to add.
[[nodiscard]] std::string hint_for(const Finish& finish, const SummaryFacts& facts);

}  // namespace ddrun::launcher
