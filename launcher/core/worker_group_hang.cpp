// What is noticed while nothing happens: ranks that finished early, and ranks that stand still.
#include "launcher/core/worker_group.hpp"

#include "launcher/core/group_causes.hpp"
#include "launcher/core/words.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {
namespace {

// Evidence about more than a few ranks helps nobody.
constexpr std::size_t inspected_at_most = 4;

// Far beyond any delay of a healthy control thread: ddrun itself was stopped or the machine slept.
constexpr auto long_sleep = std::chrono::seconds(2);

}  // namespace

void WorkerGroup::look_around(TimePoint now) {
    clean_up_leftovers(now);
    if (early_exit_.expired(now)) return fail_early_exit(now);
    if (const auto words = early_exit_.notice(living().size(), now))
        out_.push_back(Note{*words, false});
    suspect(hang_.suspects(now), now);
}

void WorkerGroup::on(const WorkerStopped& event, TimePoint now) {
    const auto* worker = find(event.local_rank);
    if (worker != nullptr && worker->lives()) hang_.stopped(event.local_rank, event.stopped, now);
}

void WorkerGroup::on(const WorkerActive& event, TimePoint now) {
    const auto* worker = find(event.local_rank);
    if (worker == nullptr || !worker->lives()) return;
    if (event.by_output) {
        hang_.wrote(event.local_rank, now);
    } else if (hang_.progressed(event.local_rank, event.step, now)) {
        out_.push_back(StepReached{event.step});
    }
    if (phase_ == Phase::suspecting && hang_.suspects(now).empty()) phase_ = Phase::running;
}

void WorkerGroup::suspect(std::vector<int> suspects, TimePoint now) {
    if (suspects.empty()) return;
    phase_ = Phase::suspecting;
    suspects_ = std::move(suspects);
    evidence_.clear();
    deadline_ = now + rules_.inspect_patience;
    for (std::size_t i = 0; i < std::min(suspects_.size(), inspected_at_most); ++i) {
        out_.push_back(InspectWorker{suspects_[i]});
    }
}

void WorkerGroup::on(const HangEvidence& event, TimePoint now) {
    if (phase_ != Phase::suspecting) return;
    evidence_.push_back("rank " + std::to_string(rules_.first_rank + event.local_rank) + ": " +
                        event.words);
    if (evidence_.size() == std::min(suspects_.size(), inspected_at_most)) fail_hung(now);
}

void WorkerGroup::fail_hung(TimePoint now) {
    std::vector<int> ranks;
    for (const int suspect : suspects_) ranks.push_back(rules_.first_rank + suspect);
    const int first = suspects_.front();
    auto words = "no progress and no output from " + rank_list(ranks) + " for " +
                 duration_text(*rules_.hang_timeout);
    if (hang_.last_step(first) >= 0)
        words += ", last step " + std::to_string(hang_.last_step(first));
    if (hang_.is_stopped(first)) words += ", stopped by a signal";
    fail(cause_of_hang(*find(first), words, evidence_), now);
}

void WorkerGroup::fail_early_exit(TimePoint now) {
    const auto first =
        std::min_element(workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
            return a.ended_at.value_or(TimePoint::max()) < b.ended_at.value_or(TimePoint::max());
        });
    fail(cause_of_early_exit(*first, early_exit_.words(living().size(), now)), now);
}

void WorkerGroup::notice_long_sleep(TimePoint now) {
    const auto due = hang_.deadline();
    if (due && !suspended_at_ && now > *due + long_sleep) hang_.restart(now);
}

}  // namespace ddrun::launcher
