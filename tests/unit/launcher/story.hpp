#pragma once

#include "launcher/core/agent.hpp"
#include "launcher/core/worker_group.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// Stories about the launcher's decision makers: feed this, expect that action.
namespace ddrun::launcher::story {

using namespace std::chrono_literals;

constexpr ExitStatus exited(int code) {
    return {ExitStatus::Kind::exited, code, false};
}
constexpr ExitStatus killed_by(int signal) {
    return {ExitStatus::Kind::signalled, signal, false};
}

template <class Wanted, class Action>
std::vector<Wanted> all_of(const std::vector<Action>& actions) {
    std::vector<Wanted> found;
    for (const auto& action : actions) {
        if (const auto* one = std::get_if<Wanted>(&action)) found.push_back(*one);
    }
    return found;
}
template <class Wanted, class Action>
bool has(const std::vector<Action>& actions) {
    return !all_of<Wanted>(actions).empty();
}
// The only one of its kind; a default one where there is none or several, which fails the test.
template <class Wanted, class Action>
Wanted one(const std::vector<Action>& actions) {
    const auto found = all_of<Wanted>(actions);
    return found.size() == 1 ? found.front() : Wanted{};
}

inline std::vector<int> numbers(int first, int last) {
    std::vector<int> result;
    for (int i = first; i <= last; ++i) result.push_back(i);
    return result;
}

// A group of `size` running workers, pids 100, 101 ...; the clock is turned by hand.
class GroupStory {
  public:
    explicit GroupStory(int size, GroupRules rules = {}) : group_(with_size(rules, size)) {
        (void)group_.start(now_);
        for (int i = 0; i < size; ++i) (void)feed(WorkerStarted{i, 100 + i});
    }

    WorkerGroup::Actions feed(const GroupEvent& event) { return group_.step(event, now_); }
    WorkerGroup::Actions end(int local_rank, ExitStatus status) {
        return feed(WorkerExited{local_rank, status, {}});
    }
    WorkerGroup::Actions end_all(const std::vector<int>& local_ranks, ExitStatus status) {
        WorkerGroup::Actions all;
        for (const int local_rank : local_ranks) {
            for (auto& action : end(local_rank, status)) all.push_back(std::move(action));
        }
        return all;
    }
    // Turns the clock and rings every deadline on the way, as the shell's timer does.
    WorkerGroup::Actions wait(Duration duration) {
        WorkerGroup::Actions all;
        const auto until = now_ + duration;
        for (auto due = group_.next_deadline(); due && *due <= until;
             due = group_.next_deadline()) {
            now_ = std::max(now_, *due);
            for (auto& action : group_.advance_to(now_)) all.push_back(std::move(action));
        }
        now_ = until;
        return all;
    }
    // The clock goes on and nobody looks at it: ddrun itself was stopped.
    void sleep(Duration duration) { now_ += duration; }

    [[nodiscard]] const WorkerGroup& group() const { return group_; }
    [[nodiscard]] const WorkerRecord& worker(int local_rank) const {
        return group_.workers().at(static_cast<std::size_t>(local_rank));
    }
    [[nodiscard]] TimePoint now() const { return now_; }

  private:
    static GroupRules with_size(GroupRules rules, int size) {
        rules.local_world_size = size;
        return rules;
    }

    WorkerGroup group_;
    TimePoint now_{1h};
};

}  // namespace ddrun::launcher::story
