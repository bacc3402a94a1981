#pragma once

#include "rendezvous/core/key_value_store.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_env.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace ddrun::testing {

// How a rank ended and what it said.
struct RankResult {
    int status = 0;    // as waitpid gives it
    std::string said;  // what its body wrote to `say`, then "<kind of error>: <words>" if it threw
    [[nodiscard]] bool exited_with(int code) const;
    [[nodiscard]] bool died_of(int signal) const;
};

// One node's agent and the ranks of one round, without ddrun: it forks the ranks, then serves the
// worker protocol from the test's own thread (forking is safe, and sanitizers see one thread). All
// processes it started are gone when run() returns.
class FakeAgent {
  public:
    // Runs in the forked rank, with the environment of a worker. A ddrun::Error that leaves it
    // becomes the exit status Error::exit_code(), anything else 99.
    using Body = std::function<void(std::ostream& say)>;

    explicit FakeAgent(int world_size);
    ~FakeAgent();
    FakeAgent(const FakeAgent&) = delete;
    FakeAgent& operator=(const FakeAgent&) = delete;

    // --- before run()
    // -----------------------------------------------------------------------------
    WorkerEnv environment;        // of all ranks, but for the ranks themselves
    std::vector<int> nodes;       // how many ranks think they are on each node; empty: all on one
    bool tells_of_deaths = true;  // RoundAborted to the others when a rank dies by a signal
    bool answers = true;          // false: accepts and stays silent
    std::string refuses;          // not empty: answers every hello with Refused and these words
    std::chrono::milliseconds limit = std::chrono::seconds(60);  // then every rank is killed
    // Hears every message of a rank; may call the functions below.
    std::function<void(int rank, const rendezvous::FromWorker&)> on_message;

    // Forks a rank for each `body` call and serves until all have ended. A rank that is stopped
    // while no other runs is killed. Results by rank.
    std::vector<RankResult> run(const Body& body);

    // --- during run(): from on_message or after()
    // --------------------------------------------------
    void send(int rank, const rendezvous::ToWorker& message);
    void send_all(const rendezvous::ToWorker& message);
    void kill(int rank, int signal);
    void hang_up(int rank);
    void after(std::chrono::microseconds delay, std::function<void()> action);

    // --- after run()
    // ------------------------------------------------------------------------------ What a rank
    // has told, requests left out, in order.
    [[nodiscard]] const std::vector<rendezvous::FromWorker>& notices(int rank) const;

  private:
    struct Rank {
        int pid = -1;
        int pid_fd = -1;
        int said_fd = -1;
        int socket = -1;
        bool ended = false;
        RankResult result;
        std::vector<rendezvous::FromWorker> notices;
    };
    struct Connection {
        int fd = -1;
        int rank = -1;
        rendezvous::FrameReader frames{rendezvous::max_frame_bytes};
    };
    struct Timer {
        TimePoint when;
        std::function<void()> action;
    };

    [[nodiscard]] WorkerEnv environment_of(int rank) const;
    void fork_rank(int rank, const Body& body);
    [[noreturn]] void be_rank(int rank, const Body& body, int said);
    void serve_once(TimePoint until);
    void accept_all();
    void read_from(Connection& connection);
    void hear(Connection& connection, const rendezvous::FromWorker& message);
    void hear(Connection& connection, const rendezvous::WorkerHello& hello);
    void open_arena(int rank, const rendezvous::ArenaOpen& request);
    void reap(int rank);
    void kill_stopped_if_alone();
    void send_replies(const rendezvous::KeyValueStore::Actions& replies);
    [[nodiscard]] int living() const;

    std::vector<Rank> ranks_;
    std::vector<Connection> connections_;
    std::vector<Timer> timers_;
    std::map<std::string, int> arenas_;
    rendezvous::KeyValueStore store_;
    int listener_ = -1;
};

}  // namespace ddrun::testing
