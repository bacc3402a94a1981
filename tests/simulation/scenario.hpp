#pragma once

#include "launcher/core/agent.hpp"
#include "rendezvous/core/coordinator.hpp"
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
    int helpers = 0;                // processes of its own, in sessions of their own
    std::optional<Duration> stuck;  // SIGKILL takes so long
};

// What happens to one node from outside.
struct Trouble {
    enum class Kind { stop, second_stop, stop_everybody, keeper_dies, shell_fails, usr1, ctrl_z };

    int node = 0;
    Duration when{};  // after the start
    Kind kind = Kind::stop;
    int signal = 15;
    Duration lasts{};  // ctrl_z: until fg
};

struct Scenario {
    explicit Scenario(std::uint64_t seed);

    rendezvous::JobRules rules;
    launcher::GroupRules group;
    std::vector<int> slots;        // by node
    bool instant_messages = true;  // one node: function calls
    std::vector<Trouble> troubles;

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

    Dice dice_;
    int failing_one_in_ = 4;  // workers
    int refused_one_in_ = 0;
    int stuck_one_in_ = 0;
    Duration work_{};  // what a round takes when nothing happens
};

// After this nobody plans anything bad any more, and the user loses patience with a job that
// stands.
constexpr Duration user_patience = std::chrono::seconds(400);

}  // namespace ddrun::simulation
