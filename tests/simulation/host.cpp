#include "tests/simulation/host.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;
using namespace launcher;

constexpr int signal_user_1 = 10;
constexpr int signal_kill = 9;
constexpr int signal_continue = 18;
constexpr Duration kill_patience = 10s;

ExitStatus exited(int code) {
    return {ExitStatus::Kind::exited, code, false};
}
ExitStatus killed_by(int signal) {
    return {ExitStatus::Kind::signalled, signal, false};
}

}  // namespace

Host::Host(Timeline& timeline, Scenario& scenario, Ties ties)
    : timeline_(timeline),
      scenario_(scenario),
      ties_(std::move(ties)),
      commands_(timeline),
      reports_(timeline) {}

void Host::command(std::function<void()> run) {
    commands_.send(scenario_.short_while(200), [this, run = std::move(run)] {
        if (keeper_alive_ && agent_alive_) run();
    });
}

void Host::say(int round, GroupEvent event) {
    if (!keeper_alive_) return;
    reports_.send(scenario_.short_while(200),
                  [this, round, event = std::move(event)] { ties_.tell(round, event); });
}

const Process* Host::worker(int round, int rank) const {
    for (const auto& [pid, process] : processes_) {
        if (!process.is_helper && process.round == round && process.rank == rank) return &process;
    }
    return nullptr;
}

void Host::for_living(std::optional<int> local_rank, bool helpers_too,
                      const std::function<void(int pid)>& what) {
    std::vector<int> pids;
    for (const auto& [pid, process] : processes_) {
        if (!process.alive || (process.is_helper && !helpers_too)) continue;
        if (!local_rank || process.local_rank == *local_rank) pids.push_back(pid);
    }
    for (const int pid : pids) what(pid);
}

Duration Host::waking_time() const {
    const TimePoint until = suspended() ? suspended_at_ : timeline_.now();
    return until.time_since_epoch() - time_suspended_;
}

void Host::when_awake(std::function<void()> what) {
    if (suspended()) {
        asleep_.push_back(std::move(what));
    } else {
        what();
    }
}

// --- birth and life -----------------------------------------------------------------------------

void Host::start_round(int round, int first_rank, int slots, int world_size) {
    for (int local_rank = 0; local_rank < slots; ++local_rank) {
        command(
            [=, this] { start_worker(round, first_rank + local_rank, local_rank, world_size); });
    }
}

void Host::start_worker(int round, int rank, int local_rank, int world_size) {
    const WorkerScript script = scenario_.next_worker(world_size);
    if (script.refused_with != 0) {
        ++refused_starts_;
        return say(round, WorkerNotStarted{local_rank, "refused", script.refused_with});
    }
    const int pid = ++last_pid_;
    Process& worker = processes_[pid];
    worker.round = round;
    worker.rank = rank;
    worker.local_rank = local_rank;
    worker.script = script;
    settle(worker);
    say(round, WorkerStarted{local_rank, pid});
    for (int i = 0; i < script.helpers; ++i) {
        Process& helper = processes_[++last_pid_];
        helper.round = round;
        helper.rank = rank;
        helper.local_rank = local_rank;
        helper.is_helper = true;
        settle(helper);
    }
    timeline_.in(script.start_delay, [this, pid] { when_awake([this, pid] { live(pid); }); });
}

void Host::live(int pid) {
    const Process& process = processes_.at(pid);
    if (!process.alive) return;
    if (process.script.uses_sdk) work_on(pid, process.script.step_every, 0);
    if (process.script.uses_store) store_step(pid);
    if (process.script.fate == WorkerScript::Fate::stands_still) return;
    timeline_.in(process.script.life, [this, pid] { when_awake([this, pid] { own_end(pid); }); });
}

void Host::work_on(int pid, Duration step_every, std::int64_t step) {
    timeline_.in(step_every, [=, this] {
        when_awake([=, this] {
            const Process& process = processes_.at(pid);
            const bool stands = process.script.fate == WorkerScript::Fate::stands_still && step > 3;
            if (!process.alive || stands) return;
            say(process.round, WorkerActive{process.local_rank, step, false});
            work_on(pid, step_every, step + 1);
        });
    });
}

void Host::own_end(int pid) {
    Process& process = processes_.at(pid);
    if (!process.alive) return;
    switch (process.script.fate) {
        case WorkerScript::Fate::finishes:
            if (process.script.uses_store &&
                process.store_steps <
                    static_cast<std::uint64_t>(scenario_.cluster->store_program)) {
                process.wants_to_end = true;
                return;
            }
            return end(pid, exited(0));
        case WorkerScript::Fate::exits:
            return end(pid, exited(process.script.code));
        case WorkerScript::Fate::is_killed:
            return end(pid, killed_by(process.script.code));
        case WorkerScript::Fate::blames:
            return blame(pid, process.script.blamed_rank);
        case WorkerScript::Fate::stands_still:
            return;
        case WorkerScript::Fate::never_retry:
            say(process.round, WorkerSaidNeverRetry{process.local_rank, "pointless"});
            return end(pid, exited(93));
    }
}

void Host::blame(int pid, int rank) {
    Process& process = processes_.at(pid);
    process.blames = true;
    say(process.round, WorkerBlamed{process.local_rank, rank, "peer is gone"});
    end(pid, exited(1));
}

void Host::tell_aborted(int rank) {
    command([=, this] {
        for_living({}, false, [&](int pid) {
            if (!processes_.at(pid).script.uses_sdk) return;
            timeline_.in(scenario_.short_while(3000), [=, this] {
                when_awake([=, this] {
                    if (processes_.at(pid).alive) blame(pid, rank);
                });
            });
        });
    });
}

// Libraries notice a dead peer by themselves, some at once.
void Host::peer_failed(int round, int rank) {
    for_living({}, false, [&](int pid) {
        const Process& process = processes_.at(pid);
        if (!process.script.uses_sdk || process.round != round || !scenario_.one_in(2)) return;
        timeline_.in(scenario_.short_while(5000), [=, this] {
            when_awake([=, this] {
                if (processes_.at(pid).alive) blame(pid, rank);
            });
        });
    });
}

// --- signals and death --------------------------------------------------------------------------

void Host::signal_workers(const SignalWorkers& action) {
    command([=, this] {
        for (const int local_rank : action.local_ranks) {
            for_living(local_rank, action.whole_group,
                       [&](int pid) { deliver(pid, action.signal, true); });
        }
    });
}

void Host::foreign_signal(int signal) {
    for_living({}, false, [&](int pid) { deliver(pid, signal, false); });
}

void Host::deliver(int pid, int signal, bool from_ddrun) {
    Process& process = processes_.at(pid);
    if (signal == signal_continue || process.is_helper) return;
    if (signal == signal_user_1) {
        if (process.script.uses_sdk) return;  // it has a handler
        return end_in(pid, 0s, killed_by(signal));
    }
    process.told_by_ddrun = process.told_by_ddrun || from_ddrun;
    if (from_ddrun && !process.told_at) process.told_at = waking_time();
    when_awake([this, pid, signal] { answer_stop(pid, signal); });
}

void Host::answer_stop(int pid, int signal) {
    const WorkerScript& script = processes_.at(pid).script;
    switch (script.answer) {
        case Answer::dies:
            return end_in(pid, 0s, killed_by(signal));
        case Answer::exits_0:
            return end_in(pid, 1ms, exited(0));
        case Answer::exits_1:
            return end_in(pid, 1ms, exited(1));
        case Answer::saves_then_0:
            return end_in(pid, script.answer_delay, exited(0));
        case Answer::ignores:
            return;
    }
}

void Host::kill(int pid) {
    Process& process = processes_.at(pid);
    process.told_by_ddrun = true;
    if (!process.killed_at) process.killed_at = timeline_.now();
    if (process.told_at && !process.grace_had) process.grace_had = waking_time() - *process.told_at;
    settle(process);
    const Duration takes = process.script.stuck.value_or(scenario_.short_while(300));
    timeline_.in(takes, [this, pid] { end(pid, killed_by(signal_kill)); });
}

void Host::end_in(int pid, Duration delay, ExitStatus status) {
    timeline_.in(delay, [=, this] { when_awake([=, this] { end(pid, status); }); });
}

void Host::end(int pid, ExitStatus status) {
    Process& process = processes_.at(pid);
    if (!process.alive) return;
    process.alive = false;
    process.ended_at = timeline_.now();
    process.end = status;
    settle(process);
    if (process.failed_by_itself() && !process.is_helper) ties_.failed(process.round, process.rank);
    timeline_.in(scenario_.short_while(100), [this, pid] { reap(pid); });
}

void Host::reap(int pid) {
    Process& process = processes_.at(pid);
    if (std::exchange(process.reaped, true)) return;
    if (!process.is_helper) {
        if (process.script.uses_store) ties_.connection_closed(process.round, process.rank);
        say(process.round,
            WorkerExited{process.local_rank, process.end, scenario_.short_while(50)});
    }
    look_whether_clear();
}

void Host::kill_trees(int round) {
    command([=, this] { clear(round); });
}

void Host::clear(int round) {
    clearing_ = round;
    for_living({}, true, [&](int pid) { kill(pid); });
    timeline_.in(kill_patience, [=, this] { name_stuck(round); });
    look_whether_clear();
}

void Host::look_whether_clear() {
    if (!clearing_ && !all_gone_) return;
    const bool clear = std::all_of(processes_.begin(), processes_.end(),
                                   [](const auto& entry) { return entry.second.reaped; });
    if (!clear) return;
    if (clearing_) {
        say(*std::exchange(clearing_, std::nullopt), TreesGone{});
        set_stopped(Stopped::by_agent, false);
        set_stopped(Stopped::by_keeper, false);
    }
    if (!all_gone_) return;
    keeper_alive_ = false;
    std::exchange(all_gone_, nullptr)();
}

void Host::name_stuck(int round) {
    if (clearing_ != round) return;
    for (const auto& [pid, process] : processes_) {
        if (!process.alive) continue;
        return say(round, ProcessStuck{pid, process.local_rank, "worker", "waiting in nfs_wait"});
    }
}

void Host::clean_up(int round, int local_rank) {
    command([=, this] {
        DescendantsFound found{local_rank, {}};
        for_living(local_rank, true, [&](int pid) {
            if (!processes_.at(pid).is_helper) return;
            found.processes.emplace_back(pid, "helper");
            kill(pid);
        });
        if (!found.processes.empty()) say(round, found);
    });
}

void Host::inspect(int round, int local_rank) {
    command([=, this] { say(round, HangEvidence{local_rank, "waits in futex"}); });
}

void Host::suspend(bool stop) {
    command([=, this] {
        const bool lease_ended = lease_until_ <= timeline_.now();
        if (stop) set_stopped(Stopped::by_agent, true);
        set_stopped(Stopped::by_keeper, !stop && lease_ended);
        if (!stop) set_stopped(Stopped::by_agent, false);
    });
}

void Host::set_stopped(Stopped why, bool stop) {
    const bool before = suspended();
    const int bit = static_cast<int>(why);
    stopped_ = stop ? stopped_ | bit : stopped_ & ~bit;
    if (suspended() == before) return;
    for (auto& [pid, process] : processes_) settle(process);
    if (suspended()) {
        suspended_at_ = timeline_.now();
        return;
    }
    time_suspended_ += timeline_.now() - suspended_at_;
    for (auto& what : std::exchange(asleep_, {})) what();
}

void Host::settle(Process& process) {
    const bool is_stuck = process.killed_at && process.script.stuck;
    const bool running = process.alive && !suspended() && !is_stuck;
    if (std::exchange(process.running, running) != running) ties_.changed(process);
}

void Host::keeper_dies(std::function<void()> lost) {
    if (!std::exchange(keeper_alive_, false)) return;
    end_all();
    reports_.send(scenario_.short_while(500), std::move(lost));
}

void Host::end_all() {
    stopped_ = 0;
    asleep_.clear();
    for (auto& [pid, process] : processes_) {
        if (process.alive) process.end = killed_by(signal_kill);
        process.alive = false;
        process.reaped = true;
        settle(process);
    }
}

// --- several nodes ------------------------------------------------------------------------------

void Host::lease_until(TimePoint when, Duration grace) {
    command([=, this] {
        lease_until_ = when;
        if (when > timeline_.now()) set_stopped(Stopped::by_keeper, false);
        if (when == TimePoint::max()) return;
        timeline_.at(when, [=, this] {
            if (keeper_alive_ && lease_until_ == when) set_stopped(Stopped::by_keeper, true);
        });
        timeline_.at(when + grace, [=, this] {
            const bool lives = std::any_of(
                processes_.begin(), processes_.end(),
                [](const auto& entry) { return entry.second.alive && !entry.second.is_helper; });
            if (keeper_alive_ && lease_until_ == when && !clearing_ && lives) {
                clear(processes_.rbegin()->second.round);
            }
        });
    });
}

void Host::power_off() {
    keeper_alive_ = agent_alive_ = false;
    all_gone_ = nullptr;
    end_all();
}

void Host::agent_dies(std::function<void()> gone) {
    if (!std::exchange(agent_alive_, false) || !keeper_alive_) return;
    timeline_.in(scenario_.short_while(2000), [this, gone = std::move(gone)] {
        if (!keeper_alive_) return;
        all_gone_ = gone;
        for_living({}, true, [&](int pid) { kill(pid); });
        look_whether_clear();
    });
}

// --- the store ----------------------------------------------------------------------------------

StoreStep Host::store_step_of(const Process& process) const {
    // The same for all ranks: set before get, and some of everything.
    constexpr StoreStep::Kind steps[] = {StoreStep::Kind::set,    StoreStep::Kind::get,
                                         StoreStep::Kind::add,    StoreStep::Kind::barrier,
                                         StoreStep::Kind::add,    StoreStep::Kind::swap,
                                         StoreStep::Kind::gather, StoreStep::Kind::get};
    return {steps[process.store_steps % std::size(steps)], process.store_steps};
}

void Host::store_step(int pid) {
    Process& process = processes_.at(pid);
    if (!process.alive) return;
    if (process.store_steps < static_cast<std::uint64_t>(scenario_.cluster->store_program)) {
        return ties_.ask(process, store_step_of(process));
    }
    if (process.wants_to_end) own_end(pid);
}

void Host::answer(int round, int rank, const rendezvous::ToWorker& reply) {
    if (!keeper_alive_) return;
    reports_.send(scenario_.short_while(200), [=, this] {
        when_awake([=, this] {
            for (auto& [pid, process] : processes_) {
                if (!process.alive || process.is_helper || process.round != round ||
                    process.rank != rank)
                    continue;
                const auto outcome = ties_.answered(process, store_step_of(process), reply);
                if (outcome == StoreTruth::Outcome::gives_up) return end(pid, exited(1));
                if (outcome == StoreTruth::Outcome::round_is_over) {
                    return end_in(pid, 1s, exited(1));
                }
                ++process.store_steps;
                return timeline_.in(
                    scenario_.short_while(scenario_.store_pause_us()),
                    [this, pid = pid] { when_awake([this, pid] { store_step(pid); }); });
            }
        });
    });
}

}  // namespace ddrun::simulation
