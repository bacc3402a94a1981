#pragma once

#include "launcher/core/group_messages.hpp"
#include "tests/support/seeds.hpp"
#include "tests/unit/launcher/story.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace ddrun::launcher::story {

// The keeper and the workers of one round, played by chance: they start or do not, end as they
// like, ignore signals, get stuck. What will happen next lies in `future`.
class FakeNode {
  public:
    FakeNode(testing::Dice& dice, int size) : dice_(dice), size_(size) {}

    // Performs one action of the group; what it causes happens later.
    template <class Action>
    void act(const Action& action, TimePoint now) {
        if (std::holds_alternative<StartWorkers>(action)) start(now);
        if (const auto* signal = std::get_if<SignalWorkers>(&action)) deliver(*signal, now);
        if (std::holds_alternative<KillTrees>(action)) kill(now);
        if (const auto* look = std::get_if<InspectWorker>(&action)) {
            if (dice_.one_in(2)) plan(now + small(), HangEvidence{look->local_rank, "state S"});
        }
        if (const auto* clean = std::get_if<CleanUpAfter>(&action)) {
            if (dice_.one_in(2)) {
                plan(now + small(), DescendantsFound{clean->local_rank, {{9, "helper"}}});
            }
        }
    }

    [[nodiscard]] std::optional<TimePoint> next() const {
        return future_.empty() ? std::nullopt : std::optional(future_.begin()->first);
    }
    // The next thing that happens; it takes effect here, too.
    GroupEvent take() {
        const auto first = future_.begin();
        auto event = first->second;
        future_.erase(first);
        if (const auto* exit = std::get_if<WorkerExited>(&event)) living_.erase(exit->local_rank);
        return event;
    }
    // The keeper is gone: everything is dead, and nobody reports it.
    void die() {
        living_.clear();
        future_.clear();
    }
    [[nodiscard]] const std::set<int>& living() const { return living_; }
    [[nodiscard]] bool stuck() const { return stuck_; }

  private:
    Duration small() { return Duration(dice_.between(0, 2'000'000)); }
    Duration long_while() { return Duration(dice_.between(0, 120'000'000'000)); }
    void plan(TimePoint at, GroupEvent event) { future_.emplace(at, std::move(event)); }

    void start(TimePoint now) {
        for (int i = 0; i < size_; ++i) {
            if (dice_.one_in(40)) {
                plan(now, WorkerNotStarted{i, "fork: EAGAIN", 71});
                continue;
            }
            living_.insert(i);
            plan(now, WorkerStarted{i, 100 + i});
            live(i, now);
        }
    }

    void live(int worker, TimePoint now) {
        for (int n = dice_.number(0, 4); n > 0; --n) {
            plan(now + long_while(), WorkerActive{worker, dice_.between(-1, 20), dice_.one_in(3)});
        }
        if (dice_.one_in(8)) plan(now + long_while(), WorkerStopped{worker, dice_.one_in(2)});
        if (dice_.one_in(8))
            plan(now + long_while(), WorkerBlamed{worker, dice_.number(0, 9), "x"});
        if (dice_.one_in(12)) plan(now + long_while(), WorkerSaidNeverRetry{worker, "x"});
        if (!dice_.one_in(4)) end(worker, now + long_while(), some_end());
    }

    ExitStatus some_end() {
        if (dice_.one_in(2)) return exited(0);
        return dice_.one_in(2) ? exited(dice_.number(0, 255)) : killed_by(dice_.number(1, 15));
    }

    void end(int worker, TimePoint at, ExitStatus status) {
        // The first end counts; a later one is a worker that is not there any more.
        plan(at, WorkerExited{worker, status, small()});
    }

    void deliver(const SignalWorkers& signal, TimePoint now) {
        for (const int worker : signal.local_ranks) {
            if (living_.contains(worker) && dice_.one_in(2)) {
                end(worker, now + long_while() / 4,
                    dice_.one_in(2) ? exited(0) : killed_by(signal.signal));
            }
        }
    }

    // All ends come before the word that nothing is left.
    void kill(TimePoint now) {
        std::multimap<TimePoint, GroupEvent> rest;
        const auto at = now + small();
        for (const int worker : living_) rest.emplace(at, WorkerExited{worker, killed_by(9), {}});
        if (dice_.one_in(10)) {
            stuck_ = true;
            rest.emplace(at, ProcessStuck{7, dice_.number(-1, size_ - 1), "cat", "nfs"});
        } else if (dice_.one_in(20)) {
            stuck_ = true;  // and the keeper says nothing
        } else {
            rest.emplace(at, TreesGone{});
        }
        future_ = std::move(rest);
    }

    testing::Dice& dice_;
    int size_;
    std::multimap<TimePoint, GroupEvent> future_;
    std::set<int> living_;
    bool stuck_ = false;
};

}  // namespace ddrun::launcher::story
