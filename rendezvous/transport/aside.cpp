#include "rendezvous/transport/aside.hpp"

#include <condition_variable>
#include <deque>
#include <thread>

namespace ddrun::rendezvous {
namespace {

struct Queue {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::function<void()>> waiting;

    void work() {
        while (true) {
            std::unique_lock lock(mutex);
            filled.wait(lock, [this] { return !waiting.empty(); });
            const std::function<void()> next = std::move(waiting.front());
            waiting.pop_front();
            lock.unlock();
            next();
        }
    }
};

// Never destroyed: its thread may hang in a call while the process ends.
Queue& side_queue() {
    static Queue* const queue = [] {
        auto* made = new Queue;
        std::thread([made] { made->work(); }).detach();
        return made;
    }();
    return *queue;
}

}  // namespace

void run_in_own_thread(std::function<void()> work) {
    std::thread(std::move(work)).detach();
}

void run_in_side_thread(std::function<void()> work) {
    Queue& queue = side_queue();
    const std::lock_guard lock(queue.mutex);
    queue.waiting.push_back(std::move(work));
    queue.filled.notify_one();
}

}  // namespace ddrun::rendezvous
