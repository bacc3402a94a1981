#pragma once

#include "rendezvous/core/node_link.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <functional>
#include <optional>
#include <string>

namespace ddrun::launcher {

// This node's way to its job: to the coordinator that decides rounds and to the store of the round.
// On one node both live in this process (local_job_link.hpp); of several nodes one has them, or a
// server of their own (remote_job_link.hpp). Belongs to the control thread; nothing here blocks.
class JobLink {
  public:
    // What comes back, perhaps from inside a call of the link: callers queue it.
    struct Ears {
        std::function<void(rendezvous::FromCoordinator)> hear;
        std::function<void(int round, int rank, rendezvous::ToWorker)> answer;
        std::function<void(const rendezvous::Fence&)> fence;
        // The keeper is to freeze the workers by itself at that time; told again and again.
        std::function<void(TimePoint)> lease_until;
        // If this process dies the keeper tells that address so, in these bytes.
        std::function<void(const std::string& address, std::string bytes)> last_words;
        // After Finish: nothing is left to be sent or served.
        std::function<void()> closed;
    };

    virtual ~JobLink() = default;
    virtual void say(const rendezvous::ToCoordinator& message) = 0;

    // The store of a round, for one worker of this node.
    virtual void begin_round(const rendezvous::RoundGranted& grant) = 0;
    virtual void end_round(int round) = 0;
    virtual void ask(int round, int rank, rendezvous::FromWorker request) = 0;
    virtual void forget(int round, int rank) = 0;
    // The round is being stopped: its waits end with these words.
    virtual void abort_waits(int round, const std::string& words) = 0;

    // For the one timer of the control thread.
    virtual void advance_to(TimePoint now) = 0;
    [[nodiscard]] virtual std::optional<TimePoint> next_deadline() const = 0;

    // This node's part is over (`processes_left`: some could not be killed); the others may still
    // have to hear the verdict here. Ends in `closed` within the grace of the others and 10 s.
    virtual void close(bool processes_left) = 0;
    // One line for -vv.
    [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace ddrun::launcher
