#pragma once

#include <stdexcept>

namespace train_gpt {

// What the user asked for cannot work, now or at another attempt. what() names the thing, its value
// and what would be right.
class SetupError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace train_gpt
