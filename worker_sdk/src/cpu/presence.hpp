#pragma once

#include "worker_sdk/src/cpu/arena.hpp"

namespace ddrun::detail {

// Whether a rank's process still lives, asked of the kernel through a robust mutex in its slot: no
// descriptor, no pid that could be another process's by now, and it works without the agent.

// Takes the mutex of `slot` for the calling thread, which must live as long as the rank is present.
void enter(Slot& slot);
// By the same thread.
void leave(Slot& slot);

// False where the rank had entered and its thread has died since. Any thread may ask.
[[nodiscard]] bool is_present(Slot& slot);

}  // namespace ddrun::detail
