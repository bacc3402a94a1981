#pragma once

namespace ddrun::detail {

// From now on SIGTERM (and SIGINT, where `interrupt_too`) is remembered where it would have ended
// the process; a second one ends it. A handler or an ignored signal of the program is left alone.
// The first call counts.
void arm_stop_signals(bool interrupt_too);

// The signal that came since; 0: none. Any thread.
[[nodiscard]] int received_stop_signal() noexcept;

}  // namespace ddrun::detail
