#pragma once

#include <csignal>
#include <vector>

// What ddrun does to its own process before anything else exists, and what workers get back.
namespace ddrun::launcher {

// A stream closed by the caller (`ddrun ... >&-`) becomes /dev/null, so that no other descriptor
// can take the numbers 0 to 2. First thing in main().
void open_missing_standard_streams();

struct InheritedState {
    bool hangup_ignored = false;         // nohup: stays ignored, in ddrun and in its workers
    unsigned long long nofile_soft = 0;  // soft limit before it was raised; workers get it back
};
// Raises the soft limit of descriptors to the hard one, ignores SIGPIPE and SIGXFSZ, and gives
// every other signal but an ignored SIGHUP its default meaning. Call before threads and children
// exist.
[[nodiscard]] InheritedState prepare_process();

// The signals ddrun reads from a descriptor instead of being interrupted: stop signals, those it
// passes on, job control and the end of children.
[[nodiscard]] sigset_t watched_signals(const std::vector<int>& stop_signals,
                                       const InheritedState& inherited);
void block_signals(const sigset_t& signals);

// Stops this process as Ctrl-Z stops any other, and returns when it goes on. Returns at once where
// no shell could continue it: in an orphaned process group (`ssh -t host ddrun`), as process 1; and
// where a SIGCONT has come, even a moment before. Takes that SIGCONT. For the only thread with
// signals.
void stop_this_process();

}  // namespace ddrun::launcher
