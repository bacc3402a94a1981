#pragma once

#include "rendezvous/protocol/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ddrun::rendezvous {

struct MembershipRules {
    Duration lease = std::chrono::seconds(15);
    // From a closed connection to a loss.
    Duration resume_patience = std::chrono::seconds(5);
};

// A member that is lost now, or one that has become silent.
struct MembershipChange {
    enum class Kind { lost, suspect };
    int node = 0;
    Kind kind = Kind::lost;
    std::string words;
};

// Who is here, judged by this server's clock alone. Each call costs O(log n). Not thread-safe.
class Membership {
  public:
    void set_rules(MembershipRules rules) { rules_ = rules; }

    void joined(int node, TimePoint now);
    // Anything was heard of it. True: it had been suspect.
    bool heard(int node, TimePoint now);
    // Its connection is gone. True: that is news.
    bool closed(int node, TimePoint now);
    void forget(int node);
    // This server did not listen for so long: nobody's silence counts.
    void was_slow(Duration time);

    [[nodiscard]] std::vector<int> lost_by(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;
    // No process of a node runs after this, if it was heard last when it was.
    [[nodiscard]] TimePoint fenced_by(int node) const;
    [[nodiscard]] bool is_suspect(int node) const;
    [[nodiscard]] TimePoint last_heard(int node) const;
    [[nodiscard]] bool knows(int node) const { return members_.contains(node); }

  private:
    struct Member {
        TimePoint heard{};
        TimePoint deadline{};
        bool suspect = false;
    };
    void move(int node, Member& member, TimePoint deadline);

    MembershipRules rules_;
    std::map<int, Member> members_;
    std::set<std::pair<TimePoint, int>> deadlines_;
};

}  // namespace ddrun::rendezvous
