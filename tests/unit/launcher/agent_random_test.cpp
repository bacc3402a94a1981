#include "tests/support/catch.hpp"
#include "tests/unit/launcher/agent_story.hpp"
#include "tests/unit/launcher/fake_node.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::Cause;

// A whole job of one node, with a coordinator, a keeper and a user played by chance. Whatever
// happens:
//   - one Finish, the last action of all, within a bound; its code is 0 only after a done node and
//   no stop
//   - BeginRound and EndRound alternate, a round begins only when the one before is gone
//   - one RoundGone or NodeDone for each round, after its GroupGone; no worker lives at the end
//   - once told to stop, no round begins
namespace {

// Follows the rules of a coordinator; late, and now and then silent after a Leave.
class FakeCoordinator {
  public:
    FakeCoordinator(testing::Dice& dice, int restarts) : dice_(dice), restarts_(restarts) {}

    void hear(const rendezvous::ToCoordinator& message, TimePoint now) {
        std::visit([&](const auto& said) { on(said, now); }, message);
    }
    [[nodiscard]] std::optional<TimePoint> next() const {
        return future_.empty() ? std::nullopt : std::optional(future_.begin()->first);
    }
    rendezvous::FromCoordinator take() {
        auto message = future_.begin()->second;
        future_.erase(future_.begin());
        return message;
    }

  private:
    void on(const rendezvous::Join&, TimePoint now) { grant(now); }
    void on(const rendezvous::FailureReport& report, TimePoint now) {
        if (report.cause.kind == rendezvous::CauseKind::node_unfit) return end(now, report.cause);
        if (cause_) return;
        cause_ = report.cause;
        restart_ = restarts_ > 0 && report.cause.kind != rendezvous::CauseKind::spawn_failed;
        if (restart_) --restarts_;
        stop(now);
    }
    void on(const rendezvous::Leave& leave, TimePoint now) {
        if (dice_.one_in(6)) silent_ = true;
        restart_ = false;
        const bool idle = !in_round_;
        if (!cause_) {
            cause_ = leave.cause;
            if (in_round_) stop(now);
        }
        if (idle) end(now, *cause_);
    }
    void on(const rendezvous::RoundGone&, TimePoint now) {
        in_round_ = false;
        if (restart_) return grant(now + delay() * 100);
        end(now, cause_.value_or(Cause{}));
    }
    void on(const rendezvous::NodeDone&, TimePoint now) {
        if (dice_.one_in(4)) {  // another node fails now
            cause_ = Cause{};
            cause_->exit_code = 7;
            restart_ = restarts_-- > 0;
            return stop(now);
        }
        in_round_ = false;
        say(now, rendezvous::Verdict{});
    }
    void on(const rendezvous::StepCommitted&, TimePoint) {}

    void grant(TimePoint now) {
        rendezvous::RoundGranted grant;
        grant.round = ++round_;
        grant.restart_count = round_ - 1;
        cause_.reset();
        restart_ = false;
        in_round_ = true;
        say(now, grant);
    }
    void stop(TimePoint now) { say(now, stop_round(round_, *cause_, restart_)); }
    void end(TimePoint now, const Cause& cause) { say(now, verdict(cause.exit_code, cause)); }
    void say(TimePoint now, rendezvous::FromCoordinator message) {
        if (!silent_) future_.emplace(now + delay(), std::move(message));
    }
    Duration delay() { return Duration(dice_.one_in(2) ? 0 : dice_.between(0, 50'000'000)); }

    testing::Dice& dice_;
    int restarts_;
    int round_ = 0;
    bool in_round_ = false;
    bool restart_ = false;
    bool silent_ = false;
    std::optional<Cause> cause_;
    std::multimap<TimePoint, rendezvous::FromCoordinator> future_;
};

class Trial {
  public:
    explicit Trial(std::uint64_t seed)
        : dice_(seed),
          size_(dice_.number(1, 4)),
          coordinator_(dice_, dice_.number(0, 3)),
          agent_(rules()) {}

    void run() {
        const auto stop_at = now_ + Duration(dice_.between(0, 400'000'000'000));
        feed(Started{});
        for (int turn = 0; turn < 5000 && finished_ == 0; ++turn) {
            auto next = earliest({node_ ? node_->next() : std::nullopt, coordinator_.next(),
                                  agent_.next_deadline()});
            if (!stopped_ && (!next || *next >= stop_at)) next = stop_at;
            if (!next) {  // suspended
                user_signal(18);
                REQUIRE(agent_.next_deadline());
                continue;
            }
            now_ = std::max(now_, *next);
            if (!stopped_ && now_ >= stop_at) {
                user_signal(18);
                user_signal(15);
            } else if (coordinator_.next() && *coordinator_.next() <= now_) {
                feed(AgentEvent(coordinator_.take()));
            } else if (node_ && node_->next() && *node_->next() <= now_) {
                feed(AgentEvent(node_->take()));
            } else {
                perform(agent_.advance_to(now_));
            }
            if (dice_.one_in(40)) something_else();
        }
        check_end();
    }

  private:
    AgentRules rules() {
        AgentRules rules;
        rules.group.local_world_size = size_;
        rules.group.shutdown_timeout = std::chrono::seconds(dice_.number(0, 10));
        if (dice_.one_in(2)) rules.group.hang_timeout = std::chrono::seconds(dice_.number(1, 60));
        if (dice_.one_in(2))
            rules.group.early_exit_timeout = std::chrono::seconds(dice_.number(0, 60));
        return rules;
    }

    static std::optional<TimePoint> earliest(
        std::initializer_list<std::optional<TimePoint>> times) {
        std::optional<TimePoint> first;
        for (const auto& time : times) {
            if (time) first = std::min(first.value_or(*time), *time);
        }
        return first;
    }

    void something_else() {
        switch (dice_.number(0, 7)) {
            case 0:
                return user_signal(20);
            case 1:
                return user_signal(18);
            case 2:
                return user_signal(10);
            case 3:
                if (stopped_) user_signal(2);
                return;
            case 4:
                if (dice_.one_in(10)) feed(ShellFailed{71, "disk"});
                return;
            case 5:
                if (dice_.one_in(20)) lose_keeper();
                return;
            default:
                return user_signal(28);
        }
    }

    void user_signal(int number) {
        stopped_ = stopped_ || number == 15 || number == 2;
        feed(SignalArrived{number, 1, 0, false});
    }

    void lose_keeper() {
        if (node_) node_->die();
        feed(KeeperLost{"gone"});
    }

    void feed(const AgentEvent& event) { perform(agent_.step(event, now_)); }

    void perform(const Agent::Actions& actions) {
        for (const auto& action : actions) {
            CHECK(finished_ == 0);
            std::visit([&](const auto& one) { act(one); }, action);
        }
    }

    void act(const Say& say) {
        if (std::holds_alternative<rendezvous::RoundGone>(say.message) ||
            std::holds_alternative<rendezvous::NodeDone>(say.message)) {
            CHECK_FALSE(round_open_);
        }
        if (std::holds_alternative<rendezvous::NodeDone>(say.message)) done_ = true;
        coordinator_.hear(say.message, now_);
    }
    void act(const BeginRound& begin) {
        CHECK_FALSE(round_open_);
        CHECK_FALSE(stopped_);
        CHECK(begin.grant.round > last_round_);
        CHECK((!node_ || node_->living().empty()));
        last_round_ = begin.grant.round;
        round_open_ = true;
        done_ = false;
        node_.emplace(dice_, size_);
    }
    void act(const EndRound& end) {
        CHECK(round_open_);
        CHECK(end.round == last_round_);
        round_open_ = false;
        if (!node_->stuck()) CHECK(node_->living().empty());
    }
    void act(const SuspendSelf&) {}
    void act(const Finish& finish) {
        ++finished_;
        CHECK_FALSE(round_open_);
        exit_code_ = finish.exit_code;
        if (finish.exit_code == 0) CHECK(done_);
        if (finish.exit_code != 0) CHECK(finish.cause);
    }
    void act(const GroupAction& action) { node_->act(action, now_); }

    void check_end() {
        REQUIRE(finished_ == 1);
        CHECK_FALSE(agent_.next_deadline());
        CHECK(agent_.step(SignalArrived{15, 1, 0, false}, now_).empty());
        if (node_ && !node_->stuck()) CHECK(node_->living().empty());
    }

    testing::Dice dice_;
    int size_;
    FakeCoordinator coordinator_;
    std::optional<FakeNode> node_;
    Agent agent_;
    TimePoint now_{1h};
    bool stopped_ = false;
    bool round_open_ = false;
    bool done_ = false;
    int last_round_ = 0;
    int finished_ = 0;
    int exit_code_ = -1;
};

}  // namespace

TEST_CASE("an agent ends well whatever happens (10000 seeds)") {
    for (std::uint64_t seed = 1; seed <= 10000; ++seed) {
        INFO("seed " << seed);
        Trial(seed).run();
    }
}
