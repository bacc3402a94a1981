#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "worker_sdk/core/agent_link.hpp"
#include "worker_sdk/src/control/agent_socket.hpp"
#include "worker_sdk/src/fork_guard.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ddrun::detail {

// The shell around AgentLink. Core and socket belong to whoever holds the lock. A thread that asks
// sends its own request, and while it waits it reads the socket itself: a request costs no switch
// to another thread. One waiting thread at a time reads, for all of them. When nobody waits, a
// control thread attends to the socket, so that the agent's notices are always heard.
//
// Requests begun close to each other leave together: when a thread waits for an answer, when enough
// has gathered, or after `gathering` at the latest.
//
// Every public function may be called from any thread but the control thread.
class ControlLink {
  public:
    // Called with the link's lock held, on any thread; must not block and must not call back into
    // the link.
    using OnStop = std::function<void(int signal, std::optional<TimePoint> deadline)>;
    using OnEnd = std::function<void(const Failure&)>;

    static constexpr Duration gathering = std::chrono::milliseconds(2);

    ControlLink(UniqueFd socket, OnStop on_stop);
    // Sends what is unsent, for at most a second; joins the thread. Requests still open fail. In a
    // forked child: nothing.
    ~ControlLink();
    ControlLink(const ControlLink&) = delete;
    ControlLink& operator=(const ControlLink&) = delete;

    struct Reply {
        rendezvous::ToWorker message;
        UniqueFd descriptor;  // of an ArenaReady
    };
    class Call;  // a request under way; may outlive the link, which has answered it then
    using CallPointer = std::shared_ptr<Call>;

    // Begins `request` (its id is filled in). Waits only where the agent is a megabyte behind.
    [[nodiscard]] CallPointer begin(rendezvous::FromWorker request, Subject what,
                                    std::chrono::milliseconds timeout);
    // Whether finish() would return at once. Reads what has arrived.
    [[nodiscard]] bool is_finished(const CallPointer& call);
    // Waits for the answer; once for each call. Throws what throw_failure() throws; AgentLost after
    // the call's timeout.
    [[nodiscard]] Reply finish(const CallPointer& call);
    [[nodiscard]] Reply ask(rendezvous::FromWorker request, Subject what,
                            std::chrono::milliseconds timeout) {
        return finish(begin(std::move(request), std::move(what), timeout));
    }

    // Returns when the kernel has the notice, or after a second: the process may end right away.
    void tell(const rendezvous::FromWorker& notice);
    void blame(int rank, const std::string& words);
    // Never blocks.
    void progress(std::int64_t step) noexcept;

    // Runs `work` on the control thread, which lives as long as the link, and waits for it.
    void run_there(const std::function<void()>& work);

    // From now on `on_end` hears when no wait for a peer can finish; at once where that is already
    // so. nullptr: nobody. When it returns no earlier listener is running.
    void listen_to_end(OnEnd on_end);

  private:
    using Lock = std::unique_lock<std::mutex>;
    struct Errand {
        std::function<void()> work;
        std::promise<void> done;
    };
    // How the control thread waits.
    enum class Attention {
        full,   // on the socket
        brief,  // for `gathering`: other threads use the socket just now
        none,   // until it is woken or a long pause ends: a thread waits on the socket
    };

    void wake() noexcept;
    void say_and_wait_until_sent(AgentLink::Event event);

    // --- with the lock held; those that take it let go of it while they wait
    // ----------------------
    void wait_for_answer(Lock& lock, Call& call);
    void read_until_answered(Lock& lock, Call& call);
    void let_another_read();
    void wait_for_room(Lock& lock);
    void wait_for_socket(Lock& lock, short events, std::optional<TimePoint> deadline);
    void read_socket();
    void flush();
    void give_to_kernel();
    void feed(AgentLink::Event event);
    void perform(AgentLink::Actions actions);
    void act(const AgentLink::Send& action);
    void act(AgentLink::Answer& action);
    void act(const AgentLink::RaiseStop& action);
    void act(const AgentLink::EndWaits& action);
    void act(const AgentLink::Close& action);

    // --- on the control thread -------------------------------------------------------------------
    void run();
    void pause(Lock& lock);
    void choose_attention();
    void take_errands(Lock& lock);
    void take_progress();

    ForkGuard guard_;
    OnStop on_stop_;
    UniqueFd wake_;

    std::mutex mutex_;  // all that follows, but for the atomics
    AgentLink core_;
    AgentSocket socket_;
    UniqueFd descriptor_;  // that came with the message being handled
    std::uint64_t next_id_ = AgentLink::hello_id + 1;
    std::unordered_map<std::uint64_t, CallPointer> calls_;
    std::vector<Call*> sleeping_;  // waiting while another thread reads for them
    bool reading_ = false;         // a thread that waits for an answer reads the socket
    std::uint64_t reads_ = 0;      // so often has a thread begun to
    std::uint64_t reads_seen_ = 0;
    bool used_ = false;  // by a thread since the control thread came round
    Attention attention_ = Attention::full;
    std::vector<Errand> errands_;
    OnEnd on_end_;
    std::optional<Failure> end_;
    bool ending_ = false;

    std::atomic<std::int64_t> step_;   // the newest one told and not yet taken
    std::atomic<bool> quiet_ = false;  // the thread will look at step_ by itself

    std::thread thread_;  // last: everything above exists when it starts
};

}  // namespace ddrun::detail
