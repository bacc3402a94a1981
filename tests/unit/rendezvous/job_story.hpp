#pragma once

#include "rendezvous/core/coordinator.hpp"

#include <chrono>
#include <deque>
#include <initializer_list>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

// A coordinator with hands: feed messages, move time, look at what was said.
namespace ddrun::testing {

using namespace rendezvous;
using namespace std::chrono_literals;

inline Join join_of(const std::string& name, int slots = 2) {
    Join join;
    join.node_name = name;
    join.slots = slots;
    join.address = "10.9.0." + name.substr(1);
    join.port = 40000;
    return join;
}

inline Cause exited(int code, int rank = 0, Duration age = 0ms) {
    Cause cause;
    cause.failure.status = {ExitStatus::Kind::exited, code, false};
    cause.failure.rank = rank;
    cause.failure.age = age;
    cause.words = "rank " + std::to_string(rank) + " exited " + std::to_string(code);
    return cause;
}

inline Cause killed_by(int signal, int rank = 0, Duration age = 0ms) {
    Cause cause = exited(0, rank, age);
    cause.failure.status = {ExitStatus::Kind::signalled, signal, false};
    return cause;
}

inline Cause of_kind(CauseKind kind, int exit_code = 0) {
    Cause cause;
    cause.kind = kind;
    cause.exit_code = exit_code;
    return cause;
}

inline Cause stopped_by(int signal) {
    return of_kind(CauseKind::told_to_stop, exit_code::signal_base + signal);
}

inline JobRules group_of(int nodes, int restarts = 0) {
    JobRules rules;
    rules.nodes = nodes;
    rules.max_restarts = restarts;
    return rules;
}

inline JobRules group_of_between(int least, int most, int restarts = 0) {
    JobRules rules = group_of(most, restarts);
    rules.min_nodes = least;
    return rules;
}

inline JobRules with_spares(JobRules rules, int spares) {
    rules.spares = spares;
    return rules;
}

class JobStory {
  public:
    explicit JobStory(JobRules rules = {}) : rules_(std::move(rules)), coordinator_(rules_) {}
    // A server that started empty.
    JobStory(JobRules rules, const std::vector<Presented>& presented)
        : rules_(std::move(rules)),
          coordinator_(Coordinator::restore(rules_, presented, TimePoint(1h))) {
        round_ = coordinator_.round();
        take(coordinator_.advance_to(now_));
    }

    // Nodes n0, n1 ... join in order; connection numbers are 100, 101 ...
    void form() {
        for (int node = 0; node < rules_.nodes; ++node) {
            says(node, join_of("n" + std::to_string(node)));
        }
    }

    void joins(int node) { says(node, join_of("n" + std::to_string(node))); }
    void says(int node, ToCoordinator message) {
        take(coordinator_.step({100 + node, std::move(message)}, now_));
    }
    void falls_silent(int node) { happens(NodeSuspect{100 + node, true}); }
    void is_back(int node) { happens(NodeSuspect{100 + node, false}); }
    void is_lost(int node, Duration fenced_in = 0ms) {
        happens(NodeLost{100 + node, "killed", false, now_ + fenced_in});
    }
    void says_goodbye(int node) { happens(NodeLost{100 + node, {}, true, now_}); }
    void happens(const CoordinatorEvent& event) { take(coordinator_.step(event, now_)); }
    void fails(int node, const Cause& cause) { says(node, FailureReport{round(), cause}); }
    void gone(int node) { says(node, RoundGone{round()}); }
    void done(int node) { says(node, NodeDone{round()}); }
    void all_gone() {
        const int ended = round();
        for (int node = 0; node < rules_.nodes; ++node) says(node, RoundGone{ended});
    }

    // What a test does not look at is said and forgotten: the next round runs.
    void survivors_are_clear(std::initializer_list<int> nodes) {
        const int ended = round();
        for (int node : nodes) says(node, RoundGone{ended});
    }

    // Time passes; deadlines on the way are kept.
    void passes(Duration time) {
        const TimePoint end = now_ + time;
        while (coordinator_.next_deadline() && *coordinator_.next_deadline() <= end) {
            now_ = *coordinator_.next_deadline();
            take(coordinator_.advance_to(now_));
        }
        now_ = end;
    }

    // The next thing said to `node`, which must be a T.
    template <typename T>
    T heard(int node) {
        auto& queue = said_[node];
        if (queue.empty()) throw std::runtime_error("nothing was said to node " + name(node));
        if (!std::holds_alternative<T>(queue.front()))
            throw std::runtime_error("something else was said to node " + name(node));
        T message = std::get<T>(queue.front());
        queue.pop_front();
        return message;
    }
    // All notices to `node` so far, in one line; they are forgotten.
    std::string notices(int node) {
        std::string words;
        std::erase_if(said_[node], [&](const FromCoordinator& message) {
            const auto* notice = std::get_if<Notice>(&message);
            if (notice != nullptr) words += (words.empty() ? "" : " | ") + notice->words;
            return notice != nullptr;
        });
        return words;
    }
    [[nodiscard]] bool silent(int node) { return said_[node].empty(); }
    [[nodiscard]] bool silent() {
        for (auto& [node, queue] : said_) {
            if (!queue.empty()) return false;
        }
        return true;
    }
    void forget_what_was_said() { said_.clear(); }

    // One node: one failure and one restart; returns the delay announced.
    Duration fail_and_restart(const Cause& cause) {
        forget_what_was_said();
        fails(0, cause);
        const auto stop = heard<StopRound>(0);
        all_gone();
        passes(stop.restart_delay);
        forget_what_was_said();
        return stop.restart_delay;
    }

    [[nodiscard]] int round() const { return round_; }
    [[nodiscard]] RoundGranted grant_of(int node) { return grants_[node]; }
    // Each round had one digest, and no two rounds the same.
    [[nodiscard]] bool digests_agree() const {
        std::set<std::uint64_t> different;
        for (const auto& [round, digest] : digests_) different.insert(digest);
        return same_digests_ && different.size() == digests_.size();
    }
    [[nodiscard]] const Coordinator& coordinator() const { return coordinator_; }

  private:
    static std::string name(int node) { return std::to_string(node); }

    void take(Coordinator::Actions answers) {
        for (NodeAnswer& answer : answers) {
            if (const auto* grant = std::get_if<RoundGranted>(&answer.message)) {
                round_ = grant->round;
                if (!digests_.emplace(round_, grant->digest).second)
                    same_digests_ &= digests_[round_] == grant->digest;
                grants_[answer.node - 100] = *grant;
            }
            said_[answer.node - 100].push_back(std::move(answer.message));
        }
    }

    JobRules rules_;
    Coordinator coordinator_;
    TimePoint now_{1h};
    int round_ = 0;
    std::map<int, std::uint64_t> digests_;
    std::map<int, RoundGranted> grants_;
    bool same_digests_ = true;
    std::map<int, std::deque<FromCoordinator>> said_;
};

}  // namespace ddrun::testing
