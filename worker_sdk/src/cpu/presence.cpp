#include "worker_sdk/src/cpu/presence.hpp"

#include <cerrno>

namespace ddrun::detail {

void enter(Slot& slot) {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&slot.alive, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
    ::pthread_mutex_lock(&slot.alive);
    slot.joined.store(1, std::memory_order_release);
}

void leave(Slot& slot) {
    slot.joined.store(0, std::memory_order_release);
    ::pthread_mutex_unlock(&slot.alive);
}

bool is_present(Slot& slot) {
    if (slot.joined.load(std::memory_order_acquire) == 0) return true;
    const int answer = ::pthread_mutex_trylock(&slot.alive);
    if (answer == EBUSY) return true;
    if (answer == ENOTRECOVERABLE) return false;
    // Held now. Released without being made consistent, it tells everybody the same from here on.
    ::pthread_mutex_unlock(&slot.alive);
    return answer != EOWNERDEAD;
}

}  // namespace ddrun::detail
