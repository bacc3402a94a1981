// Random events in random order: whatever nodes say and whenever, the promises of a job hold.

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

#include <optional>
#include <set>

using namespace ddrun::testing;

namespace {

Cause random_cause(Dice& dice) {
    Cause cause = dice.one_in(2) ? exited(dice.number(1, 4)) : killed_by(9);
    cause.failure.rank = dice.number(0, 7);
    cause.failure.age = std::chrono::milliseconds(dice.number(0, 300));
    cause.failure.signalled_by_ddrun = dice.one_in(5);
    cause.failure.blamed_rank = dice.one_in(5) ? 0 : -1;
    cause.failure.never_retry = dice.one_in(20);
    if (dice.one_in(15)) cause = of_kind(CauseKind::hang);
    if (dice.one_in(25)) cause = of_kind(CauseKind::spawn_failed, 127);
    if (dice.one_in(40)) cause = of_kind(CauseKind::node_unfit);
    if (dice.one_in(40)) cause = of_kind(CauseKind::keeper_lost);
    return cause;
}

// Watches what is said and fails the test when a promise is broken.
class Watcher {
  public:
    explicit Watcher(const JobRules& rules) : rules_(rules) {}

    void said_by(int node, const ToCoordinator& message) {
        if (std::holds_alternative<Join>(message)) joined_.insert(node);
        if (const auto* gone = std::get_if<RoundGone>(&message)) {
            if (gone->round == round_) clear_.insert(node);
        }
    }

    void said_to(const Coordinator::Actions& answers) {
        for (const NodeAnswer& answer : answers) {
            std::visit([&](const auto& message) { check(answer.node, message); }, answer.message);
        }
    }

    [[nodiscard]] int round() const { return round_; }
    [[nodiscard]] bool is_over() const { return !told_.empty(); }
    [[nodiscard]] bool all_told() const { return told_.size() == joined_.size(); }

  private:
    void check(int node, const RoundGranted& grant) {
        REQUIRE(told_.empty());
        REQUIRE(static_cast<int>(joined_.size()) == rules_.nodes);
        if (grant.round != round_) {
            REQUIRE(grant.round == round_ + 1);
            REQUIRE((round_ == 0 || clear_.size() == joined_.size()));
            round_ = grant.round;
            clear_.clear();
            granted_.clear();
        }
        REQUIRE(granted_.insert(node).second);
        REQUIRE(grant.round - 1 <= rules_.max_restarts);
        REQUIRE(grant.restart_count == grant.round - 1);
    }
    void check(int, const StopRound& stop) {
        REQUIRE(told_.empty());
        REQUIRE(stop.round == round_);
        REQUIRE(stop.restarts_used <= rules_.max_restarts);
    }
    void check(int node, const Verdict& verdict) {
        REQUIRE(told_.insert(node).second);
        if (!verdict_) verdict_ = verdict;
        REQUIRE(*verdict_ == verdict);
        REQUIRE(verdict.restarts_used == round_ - 1);
        REQUIRE((verdict.exit_code != 0) == verdict.has_cause);
    }

    static void check(int, const Parked&) { FAIL("no spare was asked for"); }
    static void check(int, const Notice&) {}

    JobRules rules_;
    int round_ = 0;
    std::set<int> joined_, granted_, clear_, told_;
    std::optional<Verdict> verdict_;
};

struct RandomJob {
    explicit RandomJob(Dice& a_dice)
        : dice(a_dice), rules(random_rules(a_dice)), coordinator(rules), watcher(rules) {}

    static JobRules random_rules(Dice& dice) {
        JobRules rules;
        rules.nodes = dice.number(1, 4);
        rules.max_restarts = dice.number(0, 4);
        rules.crash_loop = dice.one_in(4) ? 2 : 0;
        if (dice.one_in(4)) rules.no_restart_on = {2};
        rules.jitter_seed = dice.one_in(2) ? dice.bits() : 0;
        return rules;
    }

    void say(int node, const ToCoordinator& message) {
        watcher.said_by(node, message);
        watcher.said_to(coordinator.step({node, message}, now));
    }

    void time_passes() {
        now += std::chrono::milliseconds(dice.number(0, 500));
        const auto due = coordinator.next_deadline();
        if (due && (*due <= now || dice.one_in(3))) {
            now = std::max(now, *due);
            watcher.said_to(coordinator.advance_to(now));
        }
    }

    void form() {
        for (int node = 0; node < rules.nodes; ++node) {
            time_passes();
            say(node, join_of("n" + std::to_string(node), dice.number(1, 4)));
        }
    }

    void something_happens() {
        const int node = dice.number(0, rules.nodes - 1);
        const int round = dice.one_in(10) ? watcher.round() - 1 : watcher.round();
        time_passes();
        switch (dice.number(0, 9)) {
            case 0:
                return say(node, FailureReport{round, random_cause(dice)});
            case 1:
                return say(node, StepCommitted{round});
            case 2:
                return dice.one_in(30) ? say(node, Leave{stopped_by(15)}) : void();
            case 3:
            case 4:
                return say(node, NodeDone{round});
            default:
                return say(node, RoundGone{round});
        }
    }

    Dice& dice;
    JobRules rules;
    Coordinator coordinator;
    Watcher watcher;
    ddrun::TimePoint now{1h};
};

}  // namespace

TEST_CASE("whatever nodes say: rounds rise, restarts stay within the budget, one verdict for all") {
    const auto seed = GENERATE(range(1u, 3000u));
    INFO("seed " << seed);
    Dice dice(seed);
    RandomJob job(dice);
    job.form();
    for (int i = 0; i < 300 && !job.watcher.is_over(); ++i) {
        job.something_happens();
    }
    // Whatever state that left: once every node is clear, the job ends or a round runs.
    for (int i = 0; i < 20 && !job.watcher.is_over(); ++i) {
        for (int node = 0; node < job.rules.nodes; ++node) {
            job.say(node, NodeDone{job.watcher.round()});
            job.say(node, RoundGone{job.watcher.round()});
        }
        job.now += 1min;
        job.watcher.said_to(job.coordinator.advance_to(job.now));
    }
    INFO(job.coordinator.describe());
    REQUIRE(job.watcher.is_over());
    REQUIRE(job.watcher.all_told());
}

TEST_CASE("the same events give the same answers, twice") {
    const auto transcript = [](unsigned seed) {
        Dice dice(seed);
        RandomJob job(dice);
        job.form();
        std::string lines;
        for (int i = 0; i < 200; ++i) {
            job.something_happens();
            lines += job.coordinator.describe() + "\n";
        }
        return lines;
    };
    for (unsigned seed = 1; seed <= 20; ++seed) CHECK(transcript(seed) == transcript(seed));
}
