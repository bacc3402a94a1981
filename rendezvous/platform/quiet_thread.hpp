#pragma once

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <thread>
#include <utility>

namespace ddrun {

// A thread that no signal interrupts: they belong to the thread that starts it. `name` is shown by
// ps and debuggers, at most 15 bytes. Throws std::system_error, and then as before nothing is
// blocked.
inline std::thread start_quiet_thread(const char* name, std::function<void()> body) {
    class AllBlocked {
      public:
        AllBlocked() {
            sigset_t all;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before_);
        }
        ~AllBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
        AllBlocked(const AllBlocked&) = delete;
        AllBlocked& operator=(const AllBlocked&) = delete;

      private:
        sigset_t before_;
    };
    const AllBlocked blocked;
    std::thread thread(std::move(body));
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace ddrun
