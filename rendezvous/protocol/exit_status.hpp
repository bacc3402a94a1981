#pragma once

#include <compare>
#include <string>

namespace ddrun {

// How one process ended. `exit 15` and death by SIGTERM are different things and stay different.
struct ExitStatus {
    enum class Kind { exited, signalled };

    Kind kind = Kind::exited;
    int value = 0;             // exit code (0..255) or signal number
    bool core_dumped = false;  // only with Kind::signalled

    // `raw` is the status word of wait(2).
    [[nodiscard]] static ExitStatus from_wait_status(int raw);

    [[nodiscard]] bool succeeded() const { return kind == Kind::exited && value == 0; }
    [[nodiscard]] bool was_signalled() const { return kind == Kind::signalled; }

    // What a shell would report: the code itself, or 128 + signal number.
    [[nodiscard]] int shell_code() const;

    // "exit code 3", "killed by SIGSEGV (segmentation fault)", "... (core dumped)".
    [[nodiscard]] std::string describe() const;

    auto operator<=>(const ExitStatus&) const = default;
};

// "SIGTERM" for 15, "SIGRTMIN+2" for real-time signals, "signal 77" when there is no name.
// Linux numbering on x86-64 and arm64; pure, so it needs no <csignal>.
[[nodiscard]] std::string signal_name(int signal);

// 15 for "SIGTERM", "TERM" or "15" in any case; 0 when there is no such signal.
[[nodiscard]] int signal_number(const std::string& name);

// The codes that ddrun itself ends with (launcher/README.md, Exit codes). Worker codes pass through
// unchanged.
namespace exit_code {
constexpr int success = 0;
constexpr int usage = 2;
constexpr int internal_error = 70;
constexpr int system_refused = 71;
constexpr int group_lost = 75;
constexpr int not_authorised = 77;
constexpr int never_retry = 93;
constexpr int timed_out = 124;
constexpr int not_executable = 126;
constexpr int not_found = 127;
constexpr int signal_base = 128;
}  // namespace exit_code

}  // namespace ddrun
