#pragma once

#include "rendezvous/core/service_events.hpp"
#include "rendezvous/server/jobs.hpp"
#include "tests/simulation/clock.hpp"
#include "tests/simulation/network.hpp"
#include "tests/simulation/plants.hpp"
#include "tests/simulation/timeline.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace ddrun::simulation {

// A rendezvous server's process: the shell of its jobs, with one timer and a queue.
class Server {
  public:
    using Trace = std::function<void(const std::string&)>;
    Server(Timeline& timeline, Scenario& scenario, const Clock& clock, Network& network,
           const Plants& plants, int machine, Trace trace);

    // With nothing in its memory.
    void start();
    void end(bool in_silence);
    // The process does not get to run.
    void stall(Duration time);

    [[nodiscard]] bool runs() const { return runs_; }
    // No node has anything to hear any more.
    [[nodiscard]] bool idle() const { return !jobs_ || jobs_->all_told(); }
    [[nodiscard]] bool knows_a_verdict() const;
    [[nodiscard]] std::string describe() const;

  private:
    [[nodiscard]] TimePoint now() const { return clock_.shows(timeline_.now()); }
    void feed(rendezvous::ServiceEvent event);
    void handle_all();
    void handle(const rendezvous::ServiceEvent& event);
    void wake_up(Duration slept);
    [[nodiscard]] rendezvous::JobsSettings settings();
    void perform(rendezvous::Jobs::Actions actions);
    void set_timer();
    void act(rendezvous::SendToPeer& action);
    void act(rendezvous::ClosePeer& action);

    // The planted bug: whoever stayed is told another node rank once somebody new takes part.
    void renumber(rendezvous::Jobs::Actions& actions);
    void note_hello(const rendezvous::PeerSaid& said);

    Timeline& timeline_;
    Scenario& scenario_;
    const Clock& clock_;
    Network& network_;
    const Plants& plants_;
    int machine_;
    Trace trace_;
    std::unique_ptr<rendezvous::Jobs> jobs_;
    std::deque<rendezvous::ServiceEvent> events_;
    std::optional<TimePoint> timer_;
    bool runs_ = false;
    bool asleep_ = false;
    int life_ = 0;  // counts starts
    bool handling_ = false;
    std::string described_;
    std::map<ConnectionId, std::string> incarnations_;  // for the planted bug
    std::map<int, bool> renumbered_;                    // by round
    std::set<std::string> placed_;
};

}  // namespace ddrun::simulation
