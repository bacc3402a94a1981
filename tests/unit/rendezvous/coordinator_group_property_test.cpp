// Nodes come, fail, fall silent, leave and are lost in any order, and the server dies in between:
// what a job promises holds, and it comes to an end.

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace ddrun::testing;
using ddrun::Duration;
using ddrun::TimePoint;

namespace {

// A node as it sees itself.
struct Node {
    int id = 0;
    Join offer;
    bool silent = false;
    std::optional<RoundGranted> grant;
    bool done = false;
    bool gone = true;
    bool leaving = false;
    bool unfit = false;
    std::optional<Cause> reported;  // of this round
    std::optional<StopRound> stop;  // of this round
    std::optional<Verdict> verdict;
    int restarts_used = 0;

    [[nodiscard]] bool has_processes() const { return grant && !gone && !done; }
};

JobRules random_rules(Dice& dice) {
    JobRules rules;
    rules.nodes = dice.number(1, 5);
    rules.min_nodes = dice.one_in(2) ? 0 : dice.number(1, rules.nodes);
    rules.spares = dice.one_in(2) ? 0 : dice.number(1, 2);
    rules.max_restarts = dice.number(0, 4);
    rules.crash_loop = dice.one_in(6) ? 3 : 0;
    return rules;
}

class Crowd {
  public:
    explicit Crowd(unsigned seed) : dice_(seed), rules_(random_rules(dice_)), job_(rules_) {}

    void anything_happens() {
        time_passes(dice_.number(0, 2000) * 1ms);
        if (dice_.one_in(60)) return server_dies();
        if (nodes_.empty() || dice_.one_in(static_cast<int>(nodes_.size()) * 3)) return join();
        Node& node =
            nodes_[static_cast<std::size_t>(dice_.number(0, static_cast<int>(nodes_.size()) - 1))];
        switch (dice_.number(0, 11)) {
            case 0:
                return fail(node);
            case 1:
                return dice_.one_in(4) ? leave(node) : step(node);
            case 2:
                return fall_silent(node);
            case 3:
                return dice_.one_in(5) ? lose(node) : come_back(node);
            case 4:
                return succeed(node);
            case 5:
                return come_back(node);
            default:
                return obey(node);
        }
    }

    // No more trouble: whoever is there does what it is told, whoever has ended leaves.
    void comes_to_rest() {
        for (int i = 0; i < 400 && !all_told(); ++i) {
            std::vector<int> ids;
            for (const Node& node : nodes_) ids.push_back(node.id);
            for (const int id : ids) {
                on_node(id, &Crowd::come_back);
                on_node(id, &Crowd::obey);
                on_node(id, &Crowd::succeed);
                on_node(id, &Crowd::leave_after_own_end);
            }
            const auto due = job_.next_deadline();
            time_passes(due && *due > now_ ? *due - now_ : 1s);
        }
        INFO(job_.describe());
        REQUIRE(all_told());
        for (const Node& node : nodes_) {
            REQUIRE((job_.is_over() || may_have_own_verdict(node)));
        }
    }

    [[nodiscard]] std::string describe() const { return job_.describe(); }

  private:
    // --- what nodes do
    void join() {
        if (nodes_.size() > 8) return;
        Node node;
        node.id = next_id_++;
        node.offer = join_of("n" + std::to_string(node.id % 7), dice_.number(1, 3));
        node.offer.port += node.id;
        node.offer.wished_node_rank = dice_.one_in(4) ? dice_.number(0, 5) : -1;
        node.offer.hosts_endpoint = dice_.one_in(8);
        nodes_.push_back(node);
        say(node.id, node.offer);
    }
    void fail(Node& node) {
        if (!node.has_processes() || node.silent || node.verdict) return;
        Cause cause = dice_.one_in(2) ? exited(dice_.number(1, 3)) : killed_by(9);
        cause.failure.age = dice_.number(0, 400) * 1ms;
        if (dice_.one_in(12)) cause = of_kind(CauseKind::node_unfit, 71);
        node.unfit = node.unfit || cause.kind == CauseKind::node_unfit;
        node.reported = cause;
        say(node.id, FailureReport{node.grant->round, cause});
    }
    void step(Node& node) {
        if (node.has_processes() && !node.silent) say(node.id, StepCommitted{node.grant->round});
    }
    void leave(Node& node) {
        if (node.leaving || node.silent || node.verdict || !dice_.one_in(3)) return;
        node.leaving = true;
        say(node.id, Leave{stopped_by(15)});
    }
    void succeed(Node& node) {
        const bool can = node.has_processes() && !node.stop && !node.reported && !node.leaving;
        if (!can || node.silent || node.verdict) return;
        node.done = true;
        say(node.id, NodeDone{node.grant->round});
    }
    // Ends what it was told to end.
    void obey(Node& node) {
        const bool must = node.stop || node.reported || node.leaving || node.verdict;
        if (!node.grant || node.gone || node.unfit || node.silent || !must) return;
        if (node.done && !node.stop) return;
        node.gone = true;
        say(node.id, RoundGone{node.grant->round});
    }
    void fall_silent(Node& node) {
        if (node.silent || node.verdict) return;
        node.silent = true;
        happens(NodeSuspect{node.id, true});
    }
    void come_back(Node& node) {
        if (!node.silent) return;
        node.silent = false;
        happens(NodeSuspect{node.id, false});
    }
    void lose(Node& node) {
        const bool clear = !node.has_processes();
        const TimePoint fenced_by = clear ? now_ : now_ + dice_.number(0, 5000) * 1ms;
        const NodeLost lost{node.id, "gone", clear && !node.silent, fenced_by};
        if (node.grant && node.grant->round == round_) fence_ = std::max(fence_, fenced_by);
        expelled_.push_back({node, fenced_by});
        nodes_.erase(nodes_.begin() + (&node - nodes_.data()));
        happens(lost);
    }

    void leave_after_own_end(Node& node) {
        if (node.unfit || (node.verdict && !is_job_verdict(node))) lose(node);
    }
    // It may be gone since: the server died and started empty.
    void on_node(int id, void (Crowd::*does)(Node&)) {
        if (Node* node = find(id)) (this->*does)(*node);
    }

    // --- the server
    void say(int node, ToCoordinator message) { happens(NodeMessage{node, std::move(message)}); }
    void happens(const CoordinatorEvent& event) { deliver(job_.step(event, now_)); }
    void time_passes(Duration time) {
        const TimePoint end = now_ + time;
        for (auto due = job_.next_deadline(); due && *due <= end; due = job_.next_deadline()) {
            now_ = std::max(now_, *due);
            deliver(job_.advance_to(now_));
        }
        now_ = end;
    }

    // All that was said and not delivered is lost with it.
    void server_dies() {
        std::erase_if(nodes_, [this](const Node& node) {  // their part is over
            return node.verdict && !is_job_verdict(node);
        });
        std::vector<Presented> present;
        for (Node& node : nodes_) {
            node.silent = false;
            present.push_back(presented_by(node));
        }
        for (std::size_t i = present.size(); i > 1; --i) {
            std::swap(present[i - 1],
                      present[static_cast<std::size_t>(dice_.number(0, static_cast<int>(i) - 1))]);
        }
        forget_what_nobody_heard(present);
        job_ = present.empty() ? Coordinator(rules_) : Coordinator::restore(rules_, present, now_);
        deliver(job_.advance_to(now_));
        say_again();
        now_ += 6s;  // the recovery window: every fence has passed
        for (const int absent : job_.absent_nodes()) {
            happens(NodeLost{absent, "did not come back", false, now_});
        }
    }
    // What reached only nodes that are lost since is as if it had never been.
    void forget_what_nobody_heard(const std::vector<Presented>& present) {
        round_ = 0;
        if (std::none_of(present.begin(), present.end(),
                         [](const Presented& node) { return node.standing.verdict.has_value(); })) {
            job_verdict_.reset();
        }
        for (const Presented& node : present) {
            if (node.standing.grant.round <= round_) continue;
            round_ = node.standing.grant.round;
            digest_ = node.standing.grant.digest;
        }
    }
    static Presented presented_by(const Node& node) {
        Presented presented{node.id, node.offer, {}};
        Standing& standing = presented.standing;
        standing.grant.round = 0;
        if (node.grant) standing.grant = *node.grant;
        standing.done = node.done;
        standing.gone = node.gone && node.grant;
        standing.restarts_used = node.restarts_used;
        standing.stop = node.stop;
        standing.verdict = node.verdict;
        return presented;
    }
    // What a server that starts empty cannot know from what nodes present.
    void say_again() {
        std::vector<Node> nodes = nodes_;
        for (const Node& node : nodes) {
            if (node.verdict) continue;
            if (node.reported && !node.stop)
                say(node.id, FailureReport{node.grant->round, *node.reported});
            if (node.leaving) say(node.id, Leave{stopped_by(15)});
        }
    }

    void deliver(const Coordinator::Actions& answers) {
        const bool dies = dice_.one_in(400) && !answers.empty();
        const std::size_t count =
            dies ? static_cast<std::size_t>(dice_.number(0, static_cast<int>(answers.size())))
                 : answers.size();
        for (std::size_t i = 0; i < count; ++i) {
            Node* node = find(answers[i].node);
            INFO("said to node " << answers[i].node << ": " << job_.describe());
            REQUIRE(node != nullptr);
            std::visit([&](const auto& message) { hear(*node, message); }, answers[i].message);
        }
        if (dies) return server_dies();
        check_round();
    }

    // --- what nodes hear
    void hear(Node& node, const RoundGranted& grant) {
        REQUIRE_FALSE(node.verdict);
        REQUIRE_FALSE(node.silent);
        REQUIRE_FALSE(node.unfit);
        if (grant.round != round_) {
            REQUIRE(grant.round == round_ + 1);
            REQUIRE(now_ >= fence_);
            for (const Node& other : nodes_) {
                INFO("node " << other.id << " in the round before");
                if (other.grant && other.grant->round == round_)
                    REQUIRE((other.gone || other.verdict));
            }
            round_ = grant.round;
            digest_ = grant.digest;
        }
        REQUIRE(grant.digest == digest_);
        REQUIRE(grant.restart_count == grant.round - 1);
        REQUIRE(grant.node_count <= rules_.nodes);
        REQUIRE(grant.node_count >= rules_.least_nodes());
        if (node.grant && node.grant->round == grant.round - 1 &&
            grant.node_count >= node.grant->node_count) {
            REQUIRE(grant.node_rank == node.grant->node_rank);
        }
        REQUIRE((!node.grant || node.grant->round < grant.round));
        node.grant = grant;
        node.done = node.gone = false;
        node.reported.reset();
        node.stop.reset();
    }
    void hear(Node& node, const StopRound& stop) {
        REQUIRE_FALSE(node.verdict);
        REQUIRE(node.grant);
        REQUIRE(stop.round == node.grant->round);
        REQUIRE_FALSE(node.stop);
        REQUIRE(stop.restarts_used <= rules_.max_restarts);
        node.stop = stop;
        node.restarts_used = stop.restarts_used;
    }
    void hear(Node& node, const Verdict& verdict) {
        REQUIRE_FALSE(node.verdict);
        node.verdict = verdict;
        REQUIRE(verdict.restarts_used <= rules_.max_restarts);
        REQUIRE((verdict.exit_code != 0) == verdict.has_cause);
        if (may_have_own_verdict(node)) return;
        if (!job_verdict_) job_verdict_ = verdict;
        REQUIRE(*job_verdict_ == verdict);
    }
    void hear(Node& node, const Parked&) { REQUIRE_FALSE(node.verdict); }
    void hear(Node& node, const Notice& notice) {
        REQUIRE_FALSE(node.verdict);
        REQUIRE_FALSE(notice.words.empty());
    }

    // Node ranks and ranks of a round have neither gap nor double.
    void check_round() {
        std::map<int, const Node*> seats;
        for (const Node& node : nodes_) {
            if (!node.grant || node.grant->round != round_ || node.verdict) continue;
            REQUIRE(seats.emplace(node.grant->node_rank, &node).second);
        }
        int last_rank = 0;
        for (const auto& [seat, node] : seats) {
            REQUIRE(node->grant->first_rank >= last_rank);
            last_rank = node->grant->first_rank + node->offer.slots;
            REQUIRE(last_rank <= node->grant->world_size);
        }
    }

    // --- small things
    Node* find(int id) {
        const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                        [id](const Node& node) { return node.id == id; });
        return found == nodes_.end() ? nullptr : &*found;
    }
    // It leaves, cannot run workers, or was refused a place.
    [[nodiscard]] bool may_have_own_verdict(const Node& node) const {
        return node.leaving || node.unfit || !node.grant || node.grant->round != round_;
    }
    [[nodiscard]] bool is_job_verdict(const Node& node) const {
        return job_.is_over() && (!may_have_own_verdict(node) || node.verdict == job_verdict_);
    }
    [[nodiscard]] bool all_told() const {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [](const Node& node) { return node.verdict.has_value(); });
    }

    struct Expelled {
        Node node;
        TimePoint fenced_by{};
    };

    Dice dice_;
    JobRules rules_;
    Coordinator job_;
    TimePoint now_{1h};
    std::vector<Node> nodes_;
    std::vector<Expelled> expelled_;
    int next_id_ = 0;
    int round_ = 0;
    std::uint64_t digest_ = 0;
    TimePoint fence_{};
    std::optional<Verdict> job_verdict_;
};

}  // namespace

TEST_CASE("whatever happens to a group, its promises hold and it comes to an end") {
    const auto seed = GENERATE(range(1u, 4000u));
    INFO("seed " << seed);
    Crowd crowd(seed);
    for (int i = 0; i < 150; ++i) crowd.anything_happens();
    INFO(crowd.describe());
    crowd.comes_to_rest();
}
