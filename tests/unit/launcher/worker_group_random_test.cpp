#include "tests/support/catch.hpp"
#include "tests/unit/launcher/fake_node.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;

// Whatever happens in whatever order, these hold:
//   - at most one GroupFailed; GroupSucceeded only without a failure and without a stop
//   - KillTrees before the end; GroupGone exactly once unless a process is stuck, and nothing after
//   it
//   - no worker is signalled that was never started, and none lives when the group is gone
//   - a deadline that has passed does something: the clock never rings twice for nothing
//   - a stopped group ends within its grace and the keeper's patience
namespace {

class Trial {
  public:
    explicit Trial(std::uint64_t seed)
        : dice_(seed), size_(dice_.number(1, 6)), node_(dice_, size_), group_(rules()) {}

    void run() {
        perform(group_.start(now_));
        const auto stop_at = now_ + Duration(dice_.between(0, 200'000'000'000));
        bool stop_asked = false;
        for (int turn = 0; turn < 2000 && !over(); ++turn) {
            auto next = earlier(node_.next(), group_.next_deadline());
            if (!stop_asked && (!next || *next >= stop_at)) next = stop_at;
            if (!next) {  // suspended, and nothing but fg can go on
                feed(Resume{});
                REQUIRE(group_.next_deadline());
                continue;
            }
            now_ = std::max(now_, *next);
            if (!stop_asked && now_ >= stop_at) {
                stop_asked = true;
                ask_to_stop();
            } else if (node_.next() && *node_.next() <= now_) {
                feed(node_.take());
            } else {
                ring();
            }
            if (dice_.one_in(15)) feed(some_request());
        }
        REQUIRE(over());
        check_end();
    }

  private:
    GroupRules rules() {
        GroupRules rules;
        rules.local_world_size = size_;
        rules.shutdown_timeout = std::chrono::seconds(dice_.number(0, 30));
        if (dice_.one_in(2)) rules.hang_timeout = std::chrono::seconds(dice_.number(1, 60));
        if (dice_.one_in(2)) rules.early_exit_timeout = std::chrono::seconds(dice_.number(0, 60));
        return rules;
    }

    static std::optional<TimePoint> earlier(std::optional<TimePoint> a,
                                            std::optional<TimePoint> b) {
        if (a && b) return std::min(*a, *b);
        return a ? a : b;
    }

    GroupEvent some_request() {
        switch (dice_.number(0, 5)) {
            case 0:
                return Suspend{};
            case 1:
                return Resume{};
            case 2:
                return ForwardSignal{10};
            case 3:  // nobody asked for it
                if (killed_ > 0) return Resume{};
                return TreesGone{};
            case 4:
                return WorkerExited{dice_.number(-1, size_), exited(1), {}};
            default:
                return Resume{};
        }
    }

    void ask_to_stop() {
        feed(Resume{});
        feed(StopGroup{dice_.one_in(2) ? 15 : 2});
        if (dice_.one_in(4)) feed(KillGroup{});
    }

    // The coordinator's answer to a failure.
    void feed(const GroupEvent& event) {
        const bool was_over = gone_ > 0;
        if (std::holds_alternative<StopGroup>(event) || std::holds_alternative<KillGroup>(event))
            stopped_ = true;
        const auto actions = group_.step(event, now_);
        CHECK((!was_over || actions.empty()));
        perform(actions);
    }

    void ring() {
        const auto before = group_.describe();
        const auto due = group_.next_deadline();
        const auto actions = group_.advance_to(now_);
        perform(actions);
        const bool moved =
            !actions.empty() || group_.describe() != before || group_.next_deadline() != due;
        CHECK(moved);
    }

    void perform(const WorkerGroup::Actions& actions) {
        for (const auto& action : actions) {
            CHECK(gone_ == 0);
            if (std::holds_alternative<GroupFailed>(action)) ++failed_;
            if (std::holds_alternative<GroupSucceeded>(action)) ++succeeded_;
            if (std::holds_alternative<GroupGone>(action)) ++gone_;
            if (std::holds_alternative<NodeUnfit>(action)) ++unfit_;
            if (std::holds_alternative<KillTrees>(action)) ++killed_;
            node_.act(action, now_);
        }
        // A failure is answered by a stop, sometimes at once and sometimes after other things.
        if (has<GroupFailed>(actions) && dice_.one_in(2)) feed(StopGroup{});
    }

    [[nodiscard]] bool over() const { return gone_ > 0 || unfit_ > 0; }

    void check_end() {
        CHECK(failed_ <= 1);
        CHECK(unfit_ <= 1);
        CHECK(killed_ == 1);
        if (node_.stuck()) return;
        CHECK(gone_ == 1);
        CHECK(node_.living().empty());
        if (succeeded_ > 0) CHECK(failed_ == 0);
        for (const auto& worker : group_.workers()) {
            CHECK_FALSE(worker.lives());
            if (succeeded_ > 0) CHECK(worker.status->succeeded());
        }
        CHECK_FALSE(group_.next_deadline());
    }

    testing::Dice dice_;
    int size_;
    FakeNode node_;
    WorkerGroup group_;
    TimePoint now_{1h};
    bool stopped_ = false;
    int failed_ = 0;
    int succeeded_ = 0;
    int gone_ = 0;
    int unfit_ = 0;
    int killed_ = 0;
};

}  // namespace

TEST_CASE("a worker group ends well whatever happens (20000 seeds)") {
    for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
        INFO("seed " << seed);
        Trial(seed).run();
    }
}
