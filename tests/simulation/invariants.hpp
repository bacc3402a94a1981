#pragma once

#include "launcher/core/agent.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/scenario.hpp"

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddrun::simulation {

struct Broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What must hold whatever happens. The world tells what it sees; the hosts know the truth.
//
// - The ranks of a round are exactly 0..W-1 over all nodes, which all were told the same about it.
// - Round numbers only rise, on every node.
// - A round begins only when no process of an older round is left on any node.
// - Restarts never exceed the budget; the number told at the end is that of rounds after the first.
// - A node that ends leaves no process and has reaped all, but for those that outlive SIGKILL.
// - One verdict, the same on all nodes. A node that was told to stop, lost its keeper or its shell,
//   or became unfit may end by itself, with its own reason.
// - Exit code 0 means that every worker of the last round exited 0 by itself.
// - The cause that is named really happened. It is no worker that ddrun had signalled before it
//   ended, and none that blames a rank which is known to have failed before.
// - A node that was told to stop starts nothing any more, and ends within grace + kill patience.
// - No rank lives twice.
// - Every round that began on a node is closed before the next, and at its end.
// - Nobody asks to be woken in the past again and again.
// - A job stands only while a worker stands still or a node is missing. Else it ends before the
//   user gives up; when the user does, it ends all the same.
// - Whoever is killed after a stop signal has had the whole grace, the time asleep not counted,
//   unless ddrun was told to stop twice.
class Invariants {
  public:
    Invariants(const Scenario& scenario, const std::vector<const Host*>& hosts)
        : scenario_(scenario), hosts_(hosts), nodes_(hosts.size()) {}

    void round_begins(int node, const rendezvous::RoundGranted& grant, TimePoint now);
    void round_ends(int node, int round);
    void told_to_stop(int node, int signal, TimePoint now);
    void keeper_lost(int node) { nodes_[at(node)].keeper_lost = true; }
    void shell_failed(int node) { nodes_[at(node)].shell_failed = true; }
    void slept(int node, Duration time) { nodes_[at(node)].slept += time; }
    void woken(int node, std::optional<TimePoint> next, TimePoint now);
    void user_gives_up() const;
    void finished(int node, const launcher::Finish& finish, TimePoint now);

    void after_every_event(TimePoint now) const;
    void at_the_end() const;

  private:
    struct NodeFacts {
        int last_round = 0;
        std::optional<int> open_round;
        std::optional<TimePoint> stopped_at;
        std::set<int> stop_signals;
        int stops = 0;
        bool keeper_lost = false;
        bool shell_failed = false;
        Duration slept{};
        int wakes_in_the_past = 0;
        std::optional<launcher::Finish> finish;
    };
    struct Placed {
        int first_rank = 0;
        int slots = 0;
    };

    static std::size_t at(int node) { return static_cast<std::size_t>(node); }
    void check_nothing_left(int node, TimePoint now) const;
    void check_grace(int node) const;
    void check_restarts(int node) const;
    void check_cause(int node, const launcher::Finish& finish) const;
    void check_worker_failed(const rendezvous::Cause& cause) const;
    void check_blame(const rendezvous::Cause& cause, const Process& worker) const;
    void check_success() const;
    [[nodiscard]] bool may_end_alone(const NodeFacts& facts) const;
    [[nodiscard]] const Process* worker_of_last_round(int rank) const;
    static void require(bool holds, const std::string& words);

    const Scenario& scenario_;
    std::vector<const Host*> hosts_;
    std::vector<NodeFacts> nodes_;
    std::map<int, rendezvous::RoundGranted> rounds_;   // as first told
    std::map<int, std::map<int, Placed>> placements_;  // round, node rank
};

}  // namespace ddrun::simulation
