#pragma once

namespace ddrun::detail {

// From now on SIGTERM, SIGINT and SIGHUP are remembered where they would have ended the process; a
// second one of a kind ends it. A handler or an ignored signal of the program is left alone.
void arm_stop_signals();

// The signal that came since; 0: none. Any thread.
[[nodiscard]] int received_stop_signal() noexcept;

}  // namespace ddrun::detail
