#include "launcher/keeper/clean_up.hpp"

#include "launcher/keeper/descendants.hpp"
#include "launcher/keeper/proc.hpp"
#include "rendezvous/protocol/worker_env.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace ddrun::launcher::keeper {
namespace {

constexpr Milliseconds look_interval{20};

void add_tree(pid_t top, std::vector<pid_t>& found) {
    found.push_back(top);
    const std::vector<pid_t> below = descendants_of(top);
    found.insert(found.end(), below.begin(), below.end());
}

bool is_dead(pid_t pid) {
    const auto facts = read_process(pid);
    return !facts || facts->state == 'Z' || facts->state == 'X';
}

}  // namespace

CleaningUp::CleaningUp(EndedWorker worker, Milliseconds grace, Milliseconds patience,
                       Clock::time_point now)
    : worker_(std::move(worker)), kill_from_(now + grace), stuck_(patience), next_look_(now) {}

bool CleaningUp::is_of_worker(pid_t pid) const {
    if (!worker_.tag.empty()) {
        const auto tag = environment_value(pid, variable::worker_tag);
        if (tag) return *tag == worker_.tag;
    }
    const auto facts = read_process(pid);
    return facts && facts->session == worker_.pid;
}

std::vector<pid_t> CleaningUp::find(const std::set<pid_t>& workers) const {
    std::vector<pid_t> found;
    for (const pid_t orphan : children_of(::getpid())) {
        if (workers.contains(orphan)) continue;
        std::vector<pid_t> tree;
        add_tree(orphan, tree);
        // A helper without our tag in another session may have started one that has it.
        for (const pid_t pid : tree) {
            if (std::find(found.begin(), found.end(), pid) == found.end() && is_of_worker(pid)) {
                add_tree(pid, found);
            }
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase_if(found, is_dead);
    return found;
}

CleaningUp::Outcome CleaningUp::look(const std::set<pid_t>& workers, Clock::time_point now) {
    Outcome outcome;
    const std::vector<pid_t> found = find(workers);
    // A process that forks and goes while it is looked for may be missed once.
    outcome.done = found.empty() && std::exchange(found_none_, found.empty());
    if (now < kill_from_) {
        next_look_ = std::min(kill_from_, now + look_interval);
        return outcome;
    }
    if (!found.empty() && !reported_) {
        reported_ = true;
        outcome.left = LeftBehind{worker_.round, worker_.local_rank, {}};
        for (const pid_t pid : found) outcome.left->processes.emplace_back(pid, command_of(pid));
    }
    signal_descendants(::getpid(), found, SIGKILL);
    outcome.stuck = stuck_.update(found, now);
    for (Stuck& one : outcome.stuck) {
        one.round = worker_.round;
        one.local_rank = worker_.local_rank;
    }
    next_look_ = now + look_interval;
    return outcome;
}

}  // namespace ddrun::launcher::keeper
