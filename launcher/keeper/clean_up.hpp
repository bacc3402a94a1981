#pragma once

#include "launcher/keeper/messages.hpp"
#include "launcher/keeper/round_ending.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ddrun::launcher::keeper {

struct EndedWorker {
    int round = 0;
    int local_rank = 0;
    pid_t pid = 0;    // also of the session it led
    std::string tag;  // DDRUN_WORKER_TAG of what it started
};

// Ends what one worker left behind while others go on. Only orphans (whose parents have died, so
// that the keeper adopted them) and what hangs below them are looked at: a living worker's tree
// never is.
class CleaningUp {
  public:
    CleaningUp(EndedWorker worker, Milliseconds grace, Milliseconds patience,
               Clock::time_point now);

    // Kills after the grace; reports what it kills once.
    struct Outcome {
        bool done = false;
        std::optional<LeftBehind> left;
        std::vector<Stuck> stuck;
    };
    [[nodiscard]] Outcome look(const std::set<pid_t>& workers, Clock::time_point now);
    [[nodiscard]] Clock::time_point next_look() const { return next_look_; }

  private:
    [[nodiscard]] std::vector<pid_t> find(const std::set<pid_t>& workers) const;
    [[nodiscard]] bool is_of_worker(pid_t pid) const;

    EndedWorker worker_;
    Clock::time_point kill_from_;
    StuckWatch stuck_;
    bool reported_ = false;
    bool found_none_ = false;
    Clock::time_point next_look_;
};

}  // namespace ddrun::launcher::keeper
