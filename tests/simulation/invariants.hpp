#pragma once

#include "launcher/core/agent.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "tests/simulation/broken.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/store_truth.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ddrun::simulation {

// What must hold whatever happens. The world tells what it sees; the hosts know the truth.
//
// - The ranks of a round are exactly 0..W-1 over all nodes, which all were told the same about it:
//   world size, master, digest. Rank 0 lives at the master's address.
// - Round numbers only rise, on every node.
// - No two processes of different rounds run at one instant, anywhere. A frozen process does not
//   run, nor does one that SIGKILL has reached.
// - No rank runs twice at one instant.
// - Those who stay keep their order; where no hole closes they keep their node rank.
// - Restarts never exceed the budget; the number told at the end is that of rounds after the first.
// - A node that ends leaves no process and has reaped all, but for those that outlive SIGKILL.
// - One verdict, the same on all nodes that hear one. A node that was told to stop, lost its keeper
//   or its shell, became unfit, or had no contact to the end may end by itself, with its own
//   reason. Where all who heard the verdict are gone and the server forgot it, nobody else can know.
// - Exit code 0 means that every worker of the last round exited 0 by itself: whoever is done stays
//   until then.
// - The cause that is named really happened. It is no worker that ddrun had signalled before it
//   ended, and none that blames a rank which is known to have failed before. A node is called lost
//   only if it was away for longer than the margin of its lease.
// - A node that was told to stop starts nothing any more, and ends within grace + kill patience.
// - Every round that began on a node is closed before the next, and at its end.
// - Nobody asks to be woken in the past again and again.
// - A job stands only while a worker stands still. Else it ends before the user gives up; when the
//   user does, it ends all the same.
// - Whoever is killed after a stop signal has had the whole grace, the time asleep not counted,
//   unless ddrun was told to stop twice or lost contact meanwhile.
// - A restart of the server alone restarts no worker.
// - The store of a round: see StoreTruth.
class Invariants {
  public:
    explicit Invariants(const Scenario& scenario) : scenario_(scenario) {}
    void watch(const Host& host) {
        hosts_.push_back(&host);
        nodes_.emplace_back();
    }

    void round_begins(int node, const rendezvous::RoundGranted& grant, TimePoint now);
    void round_ends(int node, int round);
    void told_to_stop(int node, int signal, TimePoint now);
    void keeper_lost(int node) { nodes_[at(node)].keeper_lost = true; }
    void shell_failed(int node) { nodes_[at(node)].shell_failed = true; }
    void slept(int node, Duration time);
    void woken(int node, std::optional<TimePoint> next, TimePoint now);
    void user_gives_up();
    void finished(int node, const launcher::Finish& finish, TimePoint now);

    // A process began to run or does not any more.
    void changed(int node, const Process& process);
    [[nodiscard]] StoreTruth& store(int node, int round);

    // --- several nodes ---
    void started(int node) { nodes_[at(node)].started = true; }
    void server_said(int node, const rendezvous::FromServer& message);
    // The agent was killed or its machine is off.
    // It lost contact for so long that no worker may run.
    void fenced(int node) { nodes_[at(node)].fenced = true; }
    void died(int node) { nodes_[at(node)].died = true; }
    // It may be called lost from now on; or every node may.
    void may_be_lost(int node) { nodes_[at(node)].may_be_lost = true; }
    void anyone_may_be_lost() { anyone_may_be_lost_ = true; }
    // It ends, and another one without its memory may follow.
    void server_forgets() { server_forgets_ = true; }
    void server_ends() { verdict_is_forgotten_ = verdict_is_forgotten_ || verdict_is_known_; }
    // The server forgot everything, and nothing else went wrong: no round may be stopped for it.
    void only_the_server_restarts() { only_the_server_restarts_ = true; }
    [[nodiscard]] bool verdict_is_known() const { return verdict_is_known_; }

    // What happened, for a count over many seeds: a simulation in which nothing happens proves
    // nothing.
    void saw(const std::string& what) { seen_.insert(what); }
    [[nodiscard]] const std::set<std::string>& seen() const { return seen_; }

    void after_every_event(TimePoint now) const;
    void at_the_end() const;

  private:
    struct NodeFacts {
        int run = 0;
        bool started = false;
        bool welcomed = false;
        int last_round = 0;
        int last_node_rank = -1;
        std::optional<int> open_round;
        std::optional<TimePoint> stopped_at;
        std::set<int> stop_signals;
        int stops = 0;
        bool keeper_lost = false;
        bool shell_failed = false;
        bool died = false;
        bool may_be_lost = false;
        bool refused = false;
        bool fenced = false;
        Duration slept{};
        int wakes_in_the_past = 0;
        std::optional<rendezvous::Verdict> verdict;  // of the server
        std::optional<launcher::Finish> finish;
    };
    struct Placed {
        int node = 0;
        int first_rank = 0;
        int slots = 0;
    };
    struct Round {
        rendezvous::RoundGranted grant;  // as first told
        std::map<int, Placed> placed;    // by node rank
        int running = 0;                 // processes, and workers by rank
        std::map<int, int> running_ranks;
        std::optional<StoreTruth> store;
    };
    using RoundKey = std::pair<int, int>;  // run of the job, round

    static std::size_t at(int node) { return static_cast<std::size_t>(node); }
    [[nodiscard]] std::string name_of(int node) const;
    [[nodiscard]] int run_of(int run, const rendezvous::RoundGranted& grant,
                             const std::string& words);
    void check_told_the_same(const Round& round, const rendezvous::RoundGranted& grant,
                             const std::string& words) const;
    void check_places(const Round& round, const std::string& words) const;
    void check_survivors(RoundKey key, const std::string& words) const;
    void check_nothing_left(int node, TimePoint now) const;
    void check_grace(int node) const;
    void check_restarts(int node) const;
    void check_cause(int node, const launcher::Finish& finish) const;
    void check_worker_failed(int run, const rendezvous::Cause& cause) const;
    void check_blame(int run, const rendezvous::Cause& cause, const Process& worker) const;
    void check_node_lost(const rendezvous::Cause& cause, const std::string& words) const;
    void check_success(int run) const;
    [[nodiscard]] bool may_end_alone(const NodeFacts& facts) const;
    [[nodiscard]] const Round* last_round(int run) const;
    [[nodiscard]] const Process* worker_of_last_round(int run, int rank) const;
    static void require(bool holds, const std::string& words);

    const Scenario& scenario_;
    std::vector<const Host*> hosts_;
    std::vector<NodeFacts> nodes_;
    std::map<std::string, int> runs_;  // by incarnation
    std::map<std::uint64_t, int> run_of_digest_;
    std::map<RoundKey, Round> rounds_;
    std::set<RoundKey> running_;
    std::set<int> stopping_;  // nodes
    bool anyone_may_be_lost_ = false;
    bool only_the_server_restarts_ = false;
    bool may_restart_ = false;  // a worker failed
    std::set<std::string> seen_;
    bool server_forgets_ = false;
    bool verdict_is_forgotten_ = false;  // some heard it, then the server ended
    bool verdict_is_known_ = false;
    bool user_gave_up_ = false;
};

}  // namespace ddrun::simulation
