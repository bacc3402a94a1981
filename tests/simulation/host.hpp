#pragma once

#include "launcher/core/group_messages.hpp"
#include "rendezvous/protocol/worker_messages.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/store_truth.hpp"
#include "tests/simulation/timeline.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace ddrun::simulation {

// The truth about one process, which agents only hear about.
struct Process {
    int round = 0;
    int rank = 0;
    int local_rank = 0;
    bool is_helper = false;
    WorkerScript script;
    bool alive = true;
    bool reaped = false;
    bool running = false;               // alive, not frozen, and no SIGKILL is on its way
    std::optional<Duration> told_at;    // of the host's waking time, by a stop signal of ddrun
    std::optional<Duration> grace_had;  // from then to SIGKILL
    bool told_by_ddrun = false;         // a signal of ddrun that ends processes reached it alive
    std::optional<TimePoint> killed_at;
    bool blames = false;  // it ended because of another rank
    TimePoint ended_at{};
    ExitStatus end;
    std::uint64_t store_steps = 0;  // answered
    bool wants_to_end = false;      // once its store program is through

    [[nodiscard]] bool failed_by_itself() const {
        return !alive && !end.succeeded() && !told_by_ddrun;
    }
};

// One machine and its keeper: starts, signals, kills and reaps, with small delays, in order.
class Host {
  public:
    struct Ties {
        std::function<void(int round, launcher::GroupEvent)> tell;  // what the keeper says
        std::function<void(int round, int rank)>
            failed;  // peers may notice before the keeper reports it
        // A process began to run or does not any more.
        std::function<void(const Process&)> changed;
        std::function<void(const Process&, const StoreStep&)> ask;
        std::function<StoreTruth::Outcome(const Process&, const StoreStep&,
                                          const rendezvous::ToWorker&)>
            answered;
        std::function<void(int round, int rank)> connection_closed;
    };
    Host(Timeline& timeline, Scenario& scenario, Ties ties);

    void start_round(int round, int first_rank, int slots, int world_size);
    void signal_workers(const launcher::SignalWorkers& action);
    void tell_aborted(int rank);
    void peer_failed(int round, int rank);
    void kill_trees(int round);
    void clean_up(int round, int local_rank);
    void inspect(int round, int local_rank);
    void suspend(bool stop);

    // --- several nodes ---
    // The keeper freezes by itself at that time, and kills after `grace` more.
    void lease_until(TimePoint when, Duration grace);
    void answer(int round, int rank, const rendezvous::ToWorker& reply);
    // Everything on the machine ends, and nobody says so.
    void power_off();
    // The keeper lost its agent: it kills all. `gone` once nothing is left.
    void agent_dies(std::function<void()> gone);

    // Somebody else's signal to every worker.
    void foreign_signal(int signal);
    // All processes die; nothing is said any more. Then `lost` is called.
    void keeper_dies(std::function<void()> lost);

    [[nodiscard]] const std::map<int, Process>& processes() const { return processes_; }
    [[nodiscard]] bool keeper_alive() const { return keeper_alive_; }
    [[nodiscard]] const Process* worker(int round, int rank) const;
    [[nodiscard]] int refused_starts() const { return refused_starts_; }

  private:
    void command(std::function<void()> run);
    void say(int round, launcher::GroupEvent event);
    void start_worker(int round, int rank, int local_rank, int world_size);
    void live(int pid);
    void work_on(int pid, Duration step_every, std::int64_t step);
    void own_end(int pid);
    void blame(int pid, int rank);

    void deliver(int pid, int signal, bool from_ddrun);
    void answer_stop(int pid, int signal);
    void kill(int pid);
    void end_in(int pid, Duration delay, ExitStatus end);
    void end(int pid, ExitStatus end);
    void reap(int pid);
    void end_all();
    void settle(Process& process);
    void store_step(int pid);
    enum class Stopped { by_agent = 1, by_keeper = 2 };
    void set_stopped(Stopped why, bool stop);
    [[nodiscard]] bool suspended() const { return stopped_ != 0; }
    [[nodiscard]] StoreStep store_step_of(const Process& process) const;
    void clear(int round);
    void look_whether_clear();
    void name_stuck(int round);

    void for_living(std::optional<int> local_rank, bool helpers_too,
                    const std::function<void(int pid)>& what);
    [[nodiscard]] Duration waking_time() const;
    // Runs now, or when the machine's processes are no longer suspended.
    void when_awake(std::function<void()> what);

    Timeline& timeline_;
    Scenario& scenario_;
    Ties ties_;
    Channel commands_;
    Channel reports_;
    std::map<int, Process> processes_;  // by pid
    int last_pid_ = 1000;
    int refused_starts_ = 0;
    bool keeper_alive_ = true;
    bool agent_alive_ = true;
    int stopped_ = 0;  // for which reasons
    TimePoint lease_until_ = TimePoint::max();
    std::function<void()> all_gone_;
    TimePoint suspended_at_{};
    Duration time_suspended_{};
    std::vector<std::function<void()>> asleep_;
    std::optional<int> clearing_;  // the round being killed, until it is clear
};

}  // namespace ddrun::simulation
