#pragma once

#include "rendezvous/core/job_rules.hpp"
#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace ddrun::rendezvous {

struct RestartDecision {
    bool restart = false;
    bool charged = false;  // to --max-restarts
    Duration delay{};      // before the next round, from the moment the old one is gone
    std::string why_not;   // set where the budget alone would have allowed a restart
};

// How the round that failed had lived.
struct RoundLife {
    int round = 1;
    Duration lived{};
    bool committed_a_step = false;
};

// Counts restarts of the whole job and paces them.
class RestartBudget {
  public:
    explicit RestartBudget(JobRules rules);

    // Charges 1 when it answers with a restart. `cause` could be cured by another attempt or by
    // another node.
    [[nodiscard]] RestartDecision decide(const Cause& cause, const RoundLife& life);
    // The restart decided last will not happen: its charge is given back.
    void take_back();
    // A round ended without a failure: the group forms anew.
    void note_no_failure(const RoundLife& life);
    // A server that started empty is told what the job has used.
    void adopt(int used) { used_ = std::max(used_, used); }

    [[nodiscard]] bool was_healthy(const RoundLife& life) const;
    [[nodiscard]] int used() const { return used_; }

  private:
    void note(const Cause& cause, const RoundLife& life);
    [[nodiscard]] std::string refusal(const Cause& cause) const;
    [[nodiscard]] Duration next_delay(int round) const;

    JobRules rules_;
    int used_ = 0;
    int failures_in_a_row_ = 0;  // since a healthy round
    int identical_in_a_row_ = 0;
    std::optional<Cause> last_;
};

}  // namespace ddrun::rendezvous
