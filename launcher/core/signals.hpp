#pragma once

// Numbers of the signals that decisions are about, on x86-64 and arm64; the pure folders do without
// <csignal>.
namespace ddrun::launcher::signals {

constexpr int hangup = 1;
constexpr int interrupt = 2;
constexpr int quit = 3;
constexpr int illegal_instruction = 4;
constexpr int trap = 5;
constexpr int abort = 6;
constexpr int bus_error = 7;
constexpr int arithmetic_error = 8;
constexpr int kill = 9;
constexpr int user1 = 10;
constexpr int segmentation_fault = 11;
constexpr int user2 = 12;
constexpr int terminate = 15;
constexpr int go_on = 18;  // SIGCONT
constexpr int terminal_stop = 20;
constexpr int bad_system_call = 31;

}  // namespace ddrun::launcher::signals
