// Who is here, by this server's clock; and the same said in a slow, obvious way.
#include "rendezvous/core/membership.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace std::chrono_literals;
namespace testing = ddrun::testing;

namespace {

constexpr MembershipRules rules{15s, 5s};

// Looks at everybody, every time.
class SlowMembership {
  public:
    void joined(int node, TimePoint now) { members_[node] = {now, std::nullopt}; }
    bool heard(int node, TimePoint now) {
        if (!members_.contains(node)) return false;
        const bool was_suspect = members_[node].closed.has_value();
        members_[node] = {now, std::nullopt};
        return was_suspect;
    }
    bool closed(int node, TimePoint now) {
        if (!members_.contains(node) || members_[node].closed) return false;
        members_[node].closed = now;
        return true;
    }
    void forget(int node) { members_.erase(node); }
    void was_slow(Duration time) {
        for (auto& [node, member] : members_) {
            member.heard += time;
            if (member.closed) *member.closed += time;
        }
    }
    [[nodiscard]] std::vector<int> lost_by(TimePoint now) const {
        std::vector<int> lost;
        for (const auto& [node, member] : members_) {
            if (deadline(member) <= now) lost.push_back(node);
        }
        return lost;
    }
    [[nodiscard]] std::optional<TimePoint> next_deadline() const {
        std::optional<TimePoint> first;
        for (const auto& [node, member] : members_) {
            first = std::min(first.value_or(deadline(member)), deadline(member));
        }
        return first;
    }

  private:
    struct Member {
        TimePoint heard{};
        std::optional<TimePoint> closed;
    };
    static TimePoint deadline(const Member& member) {
        const TimePoint silent = member.heard + rules.lease;
        return member.closed ? std::min(silent, *member.closed + rules.resume_patience) : silent;
    }
    std::map<int, Member> members_;
};

struct Here {
    Membership members;
    TimePoint now{1h};
    Here() { members.set_rules(rules); }
};

}  // namespace

TEST_CASE("a silent member is lost when its lease ends, and any word renews it") {
    Here here;
    here.members.joined(7, here.now);
    CHECK(here.members.next_deadline() == here.now + 15s);
    CHECK_FALSE(here.members.heard(7, here.now + 10s));
    CHECK(here.members.lost_by(here.now + 15s).empty());
    CHECK(here.members.lost_by(here.now + 25s) == std::vector<int>{7});
    CHECK(here.members.fenced_by(7) == here.now + 25s);
}

TEST_CASE(
    "RDZV-7: a closed connection makes suspect, and 5 s later lost, never later than the lease") {
    Here here;
    here.members.joined(7, here.now);
    CHECK(here.members.closed(7, here.now + 1s));
    CHECK_FALSE(here.members.closed(7, here.now + 2s));
    CHECK(here.members.is_suspect(7));
    CHECK(here.members.next_deadline() == here.now + 6s);
    CHECK(here.members.heard(7, here.now + 3s));  // it had been suspect
    CHECK(here.members.next_deadline() == here.now + 18s);
    CHECK(here.members.closed(7, here.now + 17s));
    CHECK(here.members.next_deadline() == here.now + 18s);
}

TEST_CASE("nobody is lost for the time in which the server did not listen") {
    Here here;
    for (int node = 0; node < 3; ++node) here.members.joined(node, here.now);
    here.members.was_slow(60s);
    CHECK(here.members.lost_by(here.now + 60s).empty());
    CHECK(here.members.lost_by(here.now + 75s).size() == 3);
    CHECK(here.members.fenced_by(0) == here.now + 75s);
}

TEST_CASE("who is forgotten has no deadline and is news to nobody") {
    Here here;
    here.members.joined(7, here.now);
    here.members.forget(7);
    CHECK_FALSE(here.members.next_deadline());
    CHECK_FALSE(here.members.heard(7, here.now));
    CHECK_FALSE(here.members.closed(7, here.now));
}

TEST_CASE("membership agrees with its slow twin, whatever happens") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        testing::Dice dice(seed);
        Here fast;
        SlowMembership slow;
        for (int step = 0; step < 200; ++step) {
            fast.now += std::chrono::milliseconds(dice.number(0, 2000));
            const int node = dice.number(0, 5);
            switch (dice.number(0, 5)) {
                case 0:
                    fast.members.joined(node, fast.now);
                    slow.joined(node, fast.now);
                    break;
                case 1:
                case 2:
                    REQUIRE(fast.members.heard(node, fast.now) == slow.heard(node, fast.now));
                    break;
                case 3:
                    REQUIRE(fast.members.closed(node, fast.now) == slow.closed(node, fast.now));
                    break;
                case 4:
                    fast.members.forget(node);
                    slow.forget(node);
                    break;
                case 5: {
                    const Duration time = std::chrono::milliseconds(dice.number(0, 3000));
                    fast.members.was_slow(time);
                    slow.was_slow(time);
                    break;
                }
            }
            auto lost = fast.members.lost_by(fast.now);
            std::sort(lost.begin(), lost.end());
            REQUIRE(lost == slow.lost_by(fast.now));
            REQUIRE(fast.members.next_deadline() == slow.next_deadline());
        }
    }
}
