#pragma once

#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

// The nodes of one job as its coordinator sees them, counted as they change: ten thousand nodes
// that report in turn must not cost a look at all of them each time.
namespace ddrun::rendezvous {

struct Member {
    int node = 0;
    Join offer;
    std::uint64_t arrival = 0;  // 1, 2, ... in the order of joining

    bool seated = false;  // takes part in the round; otherwise it waits for one
    int node_rank = -1;   // of the round; of an earlier one, or -1, where it waits
    int first_rank = 0;
    bool done = false;    // its workers of the round all exited 0
    bool gone = false;    // none of its processes of the round is left
    bool unfit = false;   // cannot run workers any more
    bool parked = false;  // was told that it is a spare

    // Of a job that a server which started empty recovers:
    bool resumed = false;        // it was a member before
    bool owes_a_reason = false;  // it is gone, and its report of why follows

    std::optional<TimePoint> silent_since;
    std::optional<Cause> own_end;  // why it leaves, or is unfit, where the job may go on without it
    bool dismissed = false;        // was told so; only the end of its processes is waited for

    [[nodiscard]] bool finished() const { return done || gone || unfit; }
    [[nodiscard]] bool silent() const { return silent_since.has_value(); }
    [[nodiscard]] bool stays() const { return !own_end; }
    [[nodiscard]] bool absent() const { return node < 0; }  // known by its seat only
};

class MemberTable {
  public:
    struct Tally {
        int seated = 0;
        int not_done = 0;          // seated
        int unfinished = 0;        // seated; may still say how its workers ended
        int not_gone = 0;          // seated; processes of the round may be left
        int silent_witnesses = 0;  // seated, unfinished and silent: may hold an older failure
        int silent_stayers = 0;    // seated and silent: a grant would go nowhere
        int stayers = 0;           // seated, and can take part in the next round
        int ready = 0;             // wait for a round and can be granted it
        int present = 0;           // all that can take part, but silent ones
        int absent = 0;
        bool operator==(const Tally&) const = default;
    };

    [[nodiscard]] const Tally& tally() const { return tally_; }
    [[nodiscard]] bool empty() const { return members_.empty(); }
    [[nodiscard]] std::size_t size() const { return members_.size(); }
    [[nodiscard]] bool contains(int node) const { return members_.contains(node); }
    [[nodiscard]] const Member* find(int node) const;
    [[nodiscard]] auto begin() const { return members_.begin(); }  // by node
    [[nodiscard]] auto end() const { return members_.end(); }

    void add(int node, const Join& offer);  // not known before; it waits
    void remove(int node);
    // The only way to change a member: `change` gets a Member&. `node` is known.
    template <typename Change>
    void update(int node, Change change) {
        Member& member = members_.at(node);
        count(member, -1);
        change(member);
        count(member, 1);
    }
    template <typename Change>
    void update_all(Change change) {
        for (auto& [node, member] : members_) {
            count(member, -1);
            change(member);
            count(member, 1);
        }
    }

    // A member but `except` that wishes this node rank, is not silent and stays; null: none.
    [[nodiscard]] const Member* holder_of(int wished_rank,
                                          std::optional<int> except = std::nullopt) const;

  private:
    void count(const Member& member, int by);

    std::map<int, Member> members_;
    std::set<std::pair<int, int>> wishes_;  // node rank, node
    Tally tally_;
    std::uint64_t arrivals_ = 0;
};

}  // namespace ddrun::rendezvous
