#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "worker_sdk/core/agent_link.hpp"
#include "worker_sdk/src/control/agent_socket.hpp"
#include "worker_sdk/src/fork_guard.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace ddrun::detail {

// The shell around AgentLink: one thread waits on the socket and on an eventfd, and performs the
// core's actions. All other threads post an event and wait for their answer. Every public function
// may be called from any thread but the control thread itself.
class ControlLink {
  public:
    // Called on the control thread; must not block and must not call back into the link.
    using OnStop = std::function<void(int signal, std::optional<TimePoint> deadline)>;
    using OnEnd = std::function<void(const Failure&)>;

    ControlLink(UniqueFd socket, OnStop on_stop);
    // Sends what is unsent, for at most a second; joins the thread. In a forked child: nothing.
    ~ControlLink();
    ControlLink(const ControlLink&) = delete;
    ControlLink& operator=(const ControlLink&) = delete;

    struct Reply {
        rendezvous::ToWorker message;
        UniqueFd descriptor;  // of an ArenaReady
    };
    // Sends `request` (its id is filled in) and waits for the answer. `what` begins the words of an
    // error. Throws what throw_failure() throws; AgentLost after `timeout`.
    Reply ask(rendezvous::FromWorker request, const std::string& what,
              std::chrono::milliseconds timeout);

    // Returns when the kernel has the notice, or after a second: the process may end right away.
    void tell(const rendezvous::FromWorker& notice);
    void blame(int rank, const std::string& words);
    // Never blocks.
    void progress(std::int64_t step) noexcept;

    // Runs `work` on the control thread and waits for it.
    void run_there(const std::function<void()>& work);

    // From now on `on_end` hears when no wait for a peer can finish; at once where that is already
    // so. nullptr: nobody. When it returns no earlier listener is running.
    void listen_to_end(OnEnd on_end);

  private:
    using Outcome = std::variant<Reply, Failure>;
    struct Post {
        std::optional<AgentLink::Event> event;
        std::function<void()> work;
        std::optional<std::promise<void>> worked;  // wake when `work` has run
        std::optional<std::promise<void>> sent;    // wake when what this caused is sent
    };
    struct Unsent {
        std::uint64_t until = 0;  // AgentSocket::sent() that is enough
        TimePoint deadline;
        std::promise<void> sent;
    };

    void post(Post item);
    void wake() noexcept;
    void post_and_wait_until_sent(AgentLink::Event event);

    // --- on the control thread ------------------------------------------------------------------
    void run();
    void wait();
    void take_posts();
    void take_progress();
    void read_socket();
    void write_socket();
    [[nodiscard]] bool finished() const;
    void feed(const AgentLink::Event& event);
    void perform(AgentLink::Actions actions);
    void act(const AgentLink::Send& action);
    void act(AgentLink::Answer& action);
    void act(const AgentLink::RaiseStop& action);
    void act(const AgentLink::EndWaits& action);
    void act(const AgentLink::Close& action);

    ForkGuard guard_;
    OnStop on_stop_;
    UniqueFd wake_;

    std::mutex mutex_;  // posts_, waiting_, on_end_, end_
    std::vector<Post> posts_;
    std::map<std::uint64_t, std::promise<Outcome>> waiting_;
    OnEnd on_end_;
    std::optional<Failure> end_;

    std::atomic<std::uint64_t> next_id_ = AgentLink::hello_id + 1;
    std::atomic<std::int64_t> step_;   // the newest one told and not yet taken
    std::atomic<bool> quiet_ = false;  // the thread will look at step_ by itself

    // Owned by the control thread.
    AgentLink core_;
    AgentSocket socket_;
    UniqueFd descriptor_;  // that came with the message being handled
    std::deque<Unsent> unsent_;
    std::optional<TimePoint> ending_;  // until when unsent bytes may keep the thread

    std::thread thread_;  // last: everything above exists when it starts
};

}  // namespace ddrun::detail
