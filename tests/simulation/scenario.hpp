#pragma once

#include "launcher/core/agent.hpp"
#include "rendezvous/core/job_rules.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "tests/support/seeds.hpp"

#include <optional>
#include <vector>

// What a seed means: the job, how its workers behave, and what goes wrong around them.
namespace ddrun::simulation {

using testing::Dice;

enum class Answer { dies, exits_0, exits_1, saves_then_0, ignores };  // to a stop signal

// One worker of one round.
struct WorkerScript {
    enum class Fate { finishes, exits, is_killed, stands_still, blames, never_retry };

    Duration start_delay{};
    int refused_with = 0;  // exit code of a start that is refused; 0: it starts
    Duration life{};       // from start to its own end
    Fate fate = Fate::finishes;
    int code = 1;  // exit code or signal
    int blamed_rank = 0;
    Answer answer = Answer::dies;
    Duration answer_delay{};
    bool uses_sdk = false;  // tells steps, and ends by blaming when a peer is gone
    Duration step_every{};
    bool uses_store = false;        // goes through a program of store requests before its own end
    int helpers = 0;                // processes of its own, in sessions of their own
    std::optional<Duration> stuck;  // SIGKILL takes so long
};

// What happens to one node from outside.
struct Trouble {
    enum class Kind {
        stop,
        second_stop,
        stop_everybody,
        keeper_dies,
        shell_fails,
        usr1,
        ctrl_z,
        // Several nodes only.
        power_off,      // agent, keeper and workers in one instant, and nobody says so
        agent_killed,   // its keeper outlives it
        agent_stopped,  // SIGSTOP
        cut,            // nothing gets in or out of the node's machine
        cut_all,        // nor any other
        reset,          // its connection breaks
        reset_all,
        server_crash,   // and comes back empty
        server_stalls,  // it does not get to run
    };

    int node = 0;
    Duration when{};  // after the start
    Kind kind = Kind::stop;
    int signal = 15;
    Duration lasts{};  // until fg, the cut is healed, the server is back
};

// An agent process on some machine.
struct Arrival {
    int machine = 0;
    Duration when{};  // after the start
    int slots = 1;
    int wished_rank = -1;
};

// A job of several nodes.
struct Cluster {
    rendezvous::JobTerms terms;
    Duration grace = std::chrono::seconds(60);  // --rendezvous-grace
    // The first node's agent runs the server; else it has a machine of its own.
    bool embedded = false;
    Duration server_starts{};
    bool state_file = false;        // a restarted server knows which job ran
    std::vector<Arrival> arrivals;  // by node; those after the first ones replace or add
    bool uses_store = false;
    bool server_restarts = false;  // while the store is in use
    int store_program = 0;         // requests of each worker
    int store_pause_us = 100;      // between two of them, at most
    int names_missing_one_in = 0;
    int slow_message_us = 2'000;
    bool clocks_differ = false;
};

constexpr int machine_of_server = 1000;  // where it is nobody's
constexpr Duration for_ever = std::chrono::hours(24);

struct Scenario {
    explicit Scenario(std::uint64_t seed);

    rendezvous::JobRules rules;
    launcher::GroupRules group;
    std::vector<int> slots;  // by node
    std::vector<Trouble> troubles;
    std::optional<Cluster> cluster;  // nothing: one node

    [[nodiscard]] Duration message_delay();
    [[nodiscard]] bool name_is_missing();
    [[nodiscard]] int store_pause_us() const { return cluster->store_pause_us; }
    [[nodiscard]] int number(int lowest, int highest) { return dice_.number(lowest, highest); }
    [[nodiscard]] std::uint64_t bits() { return dice_.bits(); }
    // Of the next worker to be started.
    [[nodiscard]] WorkerScript next_worker(int world_size);
    // Delays of links and keepers.
    [[nodiscard]] Duration short_while(int most_us) {
        return std::chrono::microseconds(dice_.number(0, most_us));
    }
    [[nodiscard]] bool one_in(int n) { return dice_.one_in(n); }

  private:
    void draw_rules();
    void draw_troubles();
    void draw_cluster();
    void draw_terms(Cluster& cluster, int nodes);
    void draw_arrivals(Cluster& cluster, int nodes);
    void draw_cluster_troubles(Cluster& cluster);
    void add_trouble(Cluster& cluster, Duration when);
    void replace(Cluster& cluster, const Trouble& lost);

    Dice dice_;
    int failing_one_in_ = 4;  // workers
    int refused_one_in_ = 0;
    int stuck_one_in_ = 0;
    Duration work_{};  // what a round takes when nothing happens
};

// After this nobody plans anything bad any more, and the user loses patience with a job that
// stands.
constexpr Duration user_patience = std::chrono::seconds(400);
constexpr Duration users_patience_with_many = std::chrono::seconds(1200);

}  // namespace ddrun::simulation
