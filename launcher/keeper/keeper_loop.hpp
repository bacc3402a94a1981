#pragma once

#include "launcher/keeper/clean_up.hpp"
#include "launcher/keeper/keeper.hpp"
#include "launcher/keeper/link.hpp"
#include "launcher/keeper/messages.hpp"
#include "launcher/keeper/round_ending.hpp"
#include "launcher/keeper/spawn.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <sys/resource.h>
#include <termios.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ddrun::launcher::keeper {

// The keeper's one thread: obeys the agent, tells it what happens to the workers, reaps everything.
// Decides nothing. Never blocks but in its one wait, which ends at the next deadline.
class KeeperLoop {
  public:
    // Every signal is blocked. Throws std::system_error.
    KeeperLoop(UniqueFd link, const SpawnSettings& spawning, const WorkerDefaults& defaults);

    enum class End { quit, agent_gone };
    [[nodiscard]] End run();

    // What to remove when the agent died.
    [[nodiscard]] const std::set<std::string>& paths() const { return paths_; }
    // What to say, and to whom, when the agent died and nothing is left.
    [[nodiscard]] const LastWords& last_words() const { return last_words_; }
    // Kills the workers, whose numbers are known without /proc, and gives terminals back.
    void let_go();

  private:
    struct Worker {
        int round = 0;
        int local_rank = 0;
        pid_t pid = 0;
        std::string tag;
        std::string command;
        UniqueFd handle;  // pidfd
        UniqueFd report;  // see spawn.hpp; closed once the exec happened or failed
        UniqueFd terminal;
        std::optional<termios> modes;  // of the terminal, to put back when the worker is killed
        std::optional<SpawnFailure> failure;
        std::string refused_binding;
        bool stop_was_told = false;
    };
    using Workers = std::map<pid_t, Worker>;

    // --- the wait
    void watch(int fd, std::uint32_t events, std::uint64_t what);
    void unwatch(UniqueFd& fd);  // and closes it
    [[nodiscard]] int wait_ms() const;
    void handle(std::uint64_t what, std::uint32_t events);
    void advance(Clock::time_point now);

    // --- the agent
    void read_link(std::uint32_t events);
    void tell(const FromKeeper& message);  // leaves with the other news of this turn
    void send_news();
    void obey(const Spawn& order);
    void obey(const Signal& order);
    void obey(const KillRound& order);
    void obey(const CleanUp& order);
    void obey(const Inspect& order);
    void obey(const Suspend& order);
    void obey(const Lease& order);
    void obey(const LastWords& order);
    void obey(const Remove& order);
    void obey(const Quit& order);

    // --- the children
    void reap();
    bool reap_one(pid_t which);
    void on_exit(Workers::iterator worker, int status, const rusage& usage);
    void on_stop_or_continue(Worker& worker, int status);
    void pass_on_terminal_stop(const Worker& worker, int signal);
    void read_report(Worker& worker);
    void announce(Worker& worker);
    void return_terminal(const Worker& worker) const;
    void give_terminal(Worker& worker) const;
    void restore_modes(const Worker& worker) const;

    // --- endings
    [[nodiscard]] std::set<pid_t> living() const;
    void pursue_round_ending(Clock::time_point now);
    void pursue_clean_ups(Clock::time_point now);
    void tell_stuck(std::vector<Stuck> stuck);

    // --- the lease
    void signal_trees(int signal) const;
    void pursue_lease(Clock::time_point now);
    [[nodiscard]] bool lease_ended(Clock::time_point now) const;
    [[nodiscard]] Clock::time_point next_lease_step() const;

    SpawnSettings spawning_;
    WorkerDefaults defaults_;
    Link link_;
    UniqueFd epoll_;
    UniqueFd child_signals_;
    Workers workers_;                   // alive, or not yet reaped
    std::map<int, EndedWorker> ended_;  // of the current round, by local rank
    std::vector<CleaningUp> clean_ups_;
    std::optional<RoundEnding> ending_;
    std::set<std::string> paths_;
    std::optional<End> end_;
    bool childless_ = true;  // the kernel said so at the last reaping
    bool more_to_reap_ = false;
    bool suspended_ = false;  // by the agent's order
    Lease lease_;
    bool frozen_ = false;  // by ourselves, since the lease ended
    LastWords last_words_;
    Clock::time_point stop_passed_on_{};
    bool write_watched_ = false;
};

}  // namespace ddrun::launcher::keeper
