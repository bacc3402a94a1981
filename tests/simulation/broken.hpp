#pragma once

#include <stdexcept>

namespace ddrun::simulation {

// An invariant does not hold; the words say which.
struct Broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace ddrun::simulation
