#include "launcher/core/worker_group.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {
namespace {

std::vector<WorkerRecord> unborn_workers(const GroupRules& rules) {
    std::vector<WorkerRecord> workers(static_cast<std::size_t>(rules.local_world_size));
    for (int i = 0; i < rules.local_world_size; ++i) {
        workers[static_cast<std::size_t>(i)].local_rank = i;
        workers[static_cast<std::size_t>(i)].rank = rules.first_rank + i;
    }
    return workers;
}

std::optional<TimePoint> earliest(std::optional<TimePoint> left, std::optional<TimePoint> right) {
    if (left && right) return std::min(*left, *right);
    return left ? left : right;
}

}  // namespace

WorkerGroup::WorkerGroup(GroupRules rules)
    : rules_(rules),
      workers_(unborn_workers(rules)),
      hang_(rules.hang_timeout, rules.local_world_size),
      early_exit_({rules.early_exit_timeout, rules.early_notice_first, rules.early_notice_repeat}),
      leftovers_named_(workers_.size(), false) {}

WorkerGroup::Actions WorkerGroup::start(TimePoint) {
    if (phase_ != Phase::created) return {};
    phase_ = Phase::running;
    for (auto& worker : workers_) worker.awaited = true;
    return {StartWorkers{}};
}

WorkerGroup::Actions WorkerGroup::step(const GroupEvent& event, TimePoint now) {
    if (phase_ == Phase::gone) return {};
    notice_long_sleep(now);
    std::visit([&](const auto& happened) { on(happened, now); }, event);
    return std::exchange(out_, {});
}

WorkerGroup::Actions WorkerGroup::advance_to(TimePoint now) {
    const auto due = next_deadline();
    if (!due || now < *due) return {};
    notice_long_sleep(now);
    switch (phase_) {
        case Phase::running:
            look_around(now);
            break;
        case Phase::suspecting:
            fail_hung(now);
            break;
        case Phase::doubtful:
            settle_doubt(now);
            break;
        case Phase::stopping:
            grace_is_over(now);
            break;
        case Phase::clearing:
            keeper_is_silent(now);
            break;
        case Phase::created:
        case Phase::failed:
        case Phase::unfit:
        case Phase::gone:
            break;
    }
    return std::exchange(out_, {});
}

std::optional<TimePoint> WorkerGroup::next_deadline() const {
    if (suspended_at_) return std::nullopt;
    switch (phase_) {
        case Phase::running: {
            const auto leftover =
                leftovers_.empty() ? std::nullopt : std::optional(leftovers_.front().due);
            return earliest(earliest(hang_.deadline(), early_exit_.deadline()), leftover);
        }
        case Phase::suspecting:
        case Phase::doubtful:
        case Phase::stopping:
        case Phase::clearing:
            return deadline_;
        case Phase::created:
        case Phase::failed:
        case Phase::unfit:
        case Phase::gone:
            break;
    }
    return std::nullopt;
}

WorkerRecord* WorkerGroup::find(int local_rank) {
    if (local_rank < 0 || static_cast<std::size_t>(local_rank) >= workers_.size()) return nullptr;
    return &workers_[static_cast<std::size_t>(local_rank)];
}

std::vector<int> WorkerGroup::living() const {
    std::vector<int> ranks;
    for (const auto& worker : workers_) {
        if (worker.lives()) ranks.push_back(worker.local_rank);
    }
    return ranks;
}

bool WorkerGroup::anyone_left() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const WorkerRecord& worker) { return worker.lives(); });
}

bool WorkerGroup::may_fail() const {
    switch (phase_) {
        case Phase::running:
        case Phase::suspecting:
        case Phase::doubtful:
            return true;
        case Phase::created:
        case Phase::failed:
        case Phase::stopping:
        case Phase::clearing:
        case Phase::unfit:
        case Phase::gone:
            break;
    }
    return false;
}

std::string WorkerGroup::describe() const {
    auto name = [this] {
        switch (phase_) {
            case Phase::created:
                return "created";
            case Phase::running:
                return "running";
            case Phase::suspecting:
                return "suspecting";
            case Phase::doubtful:
                return "doubtful";
            case Phase::failed:
                return "failed";
            case Phase::stopping:
                return "stopping";
            case Phase::clearing:
                return "clearing";
            case Phase::unfit:
                return "unfit";
            case Phase::gone:
                return "gone";
        }
        return "?";
    };
    const auto ended =
        std::count_if(workers_.begin(), workers_.end(),
                      [](const WorkerRecord& worker) { return worker.status.has_value(); });
    return std::string(suspended_at_ ? "suspended " : "") + name() + ", " +
           std::to_string(living().size()) + " living and " + std::to_string(ended) + " ended of " +
           std::to_string(workers_.size());
}

}  // namespace ddrun::launcher
