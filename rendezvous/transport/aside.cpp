#include "rendezvous/transport/aside.hpp"

#include <condition_variable>
#include <deque>
#include <system_error>
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

// No thread could be had: an error like any other of the system, which another try may not meet.
void start_thread(std::function<void()> work) try {
    std::thread(std::move(work)).detach();
} catch (const std::system_error& error) {
    throw boost::system::system_error(error.code().value(), boost::system::generic_category());
}

// Never destroyed: its thread may hang in a call while the process ends.
Queue& side_queue() {
    static Queue* const queue = [] {
        auto made = std::make_unique<Queue>();
        start_thread([queue = made.get()] { queue->work(); });
        return made.release();
    }();
    return *queue;
}

}  // namespace

void run_in_own_thread(std::function<void()> work) {
    start_thread(std::move(work));
}

void run_in_side_thread(std::function<void()> work) {
    Queue& queue = side_queue();
    const std::lock_guard lock(queue.mutex);
    queue.waiting.push_back(std::move(work));
    queue.filled.notify_one();
}

}  // namespace ddrun::rendezvous
