#pragma once

#include "rendezvous/core/node_link.hpp"

#include <string>
#include <utility>
#include <vector>

// One NodeLink and its time. What it asks for is kept as one line each, so that a test reads as a
// story: what happened, and what followed.
namespace ddrun::testing {

using namespace rendezvous;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

inline std::string in_words(const FromNode& message) {
    struct {
        std::string operator()(const NodeHello& hello) const {
            return "hello" +
                   (hello.job_incarnation.empty() ? "" : " again to " + hello.job_incarnation) +
                   ", heard " + std::to_string(hello.heard);
        }
        std::string operator()(const Heartbeat& beat) const {
            return "heartbeat " + std::to_string(beat.number) + ", heard " +
                   std::to_string(beat.heard);
        }
        std::string operator()(const FromNodePayload& payload) const {
            return "payload " + std::to_string(payload.sequence);
        }
        std::string operator()(const PresentKeys& part) const {
            return "present " + std::to_string(part.keys.size()) + " keys" +
                   (part.last ? ", last" : "");
        }
        std::string operator()(const Goodbye&) const { return "goodbye"; }
        std::string operator()(const Obituary&) const { return "obituary"; }
    } words;
    return std::visit(words, message);
}

inline std::string in_words(const FromCoordinator& message) {
    struct {
        std::string operator()(const RoundGranted& grant) const {
            return "round " + std::to_string(grant.round);
        }
        std::string operator()(const StopRound& stop) const {
            return "stop " + std::to_string(stop.round);
        }
        std::string operator()(const Verdict& verdict) const {
            return "verdict " + std::to_string(verdict.exit_code) +
                   (verdict.cause.words.empty() ? "" : ": " + verdict.cause.words);
        }
        std::string operator()(const Parked&) const { return "parked"; }
        std::string operator()(const Notice& notice) const {
            return (notice.warning ? "warning: " : "note: ") + notice.words;
        }
    } words;
    return std::visit(words, message);
}

inline std::string in_words(const StoreAnswered& answer) {
    return "answer to rank " + std::to_string(answer.rank) +
           (std::holds_alternative<StoreFailed>(answer.reply) ? " (failed)" : "");
}

// Times are seconds since the story began.
inline std::string in_words(const NodeLinkAction& action, TimePoint start) {
    struct {
        TimePoint start;
        std::string operator()(const OpenConnection&) const { return "open"; }
        std::string operator()(const CloseConnection&) const { return "close"; }
        std::string operator()(const SendToServer& send) const { return in_words(send.message); }
        std::string operator()(const Deliver& deliver) const {
            return std::visit([](const auto& one) { return in_words(one); }, deliver.payload);
        }
        std::string operator()(const Fence& fence) const {
            switch (fence.step) {
                case FenceStep::freeze:
                    return "freeze";
                case FenceStep::thaw:
                    return "thaw";
                case FenceStep::kill:
                    return "kill";
            }
            return "?";
        }
        std::string operator()(const LeaseUntil& lease) const {
            if (lease.until == TimePoint::max()) return "no lease";
            const Duration left = lease.until - start;
            return "lease until " + std::to_string(left / 1ms) + " ms";
        }
        std::string operator()(const ArmObituary& arm) const {
            return "obituary to " + arm.server_address;
        }
    } words{start};
    return std::visit(words, action);
}

inline NodeLinkRules two_nodes() {
    NodeLinkRules rules;
    rules.terms.job_id = "j";
    rules.terms.min_nodes = rules.terms.max_nodes = 2;
    rules.offer.node_name = "n1";
    rules.node_incarnation = "aa";
    rules.obituary_token = "bb";
    rules.endpoint = "10.9.0.1:29400";
    return rules;
}

class LinkStory {
  public:
    explicit LinkStory(NodeLinkRules rules = two_nodes()) : link_(std::move(rules)) {}

    // Begins a step: what follows is in lines(), older lines are dropped.
    LinkStory& happens(NodeLinkEvent event) {
        take(link_.step(std::move(event), now_));
        return *this;
    }
    // Time goes by, with a call at every deadline as a shell would make it.
    LinkStory& passes(Duration time) {
        const TimePoint until = now_ + time;
        while (const auto deadline = link_.next_deadline()) {
            if (*deadline > until) break;
            now_ = std::max(now_, *deadline);
            take(link_.advance_to(now_));
        }
        now_ = until;
        take(link_.advance_to(now_));
        return *this;
    }
    // The process or its machine stood still: no call in between.
    LinkStory& stalls(Duration time) {
        now_ += time;
        return *this;
    }

    // All since the last call of lines().
    Lines lines() { return std::exchange(lines_, {}); }
    // Only those that begin so.
    Lines lines(const std::string& beginning) {
        Lines chosen;
        for (std::string& line : lines())
            if (line.starts_with(beginning)) chosen.push_back(std::move(line));
        return chosen;
    }

    // --- what a server does ---
    LinkStory& opened() { return happens(ConnectionOpened{"10.9.0.2", "10.9.0.1:29400", false}); }
    LinkStory& refused() { return happens(ConnectionFailed{"Connection refused", false, 0}); }
    LinkStory& welcomed(std::uint64_t heard = 0, bool present_keys = false) {
        return happens(FromServer(NodeWelcome{1, "job1", heard, present_keys}));
    }
    LinkStory& seen(std::uint64_t heartbeat, int round, std::uint64_t heard = 0) {
        return happens(FromServer(HeartbeatSeen{heartbeat, heard, round}));
    }
    LinkStory& job_says(FromJob payload) {
        return happens(FromServer(FromServerPayload{++sequence_, 0, std::move(payload)}));
    }
    LinkStory& granted(int round) {
        RoundGranted grant;
        grant.round = round;
        return job_says(FromCoordinator(grant));
    }
    LinkStory& numbers_start_again() {
        sequence_ = 0;
        return *this;
    }
    // A node in round 1 whose first heartbeat was seen: time 0 s, lease until 12 s.
    LinkStory& in_round_one() {
        passes(0s).opened().welcomed().granted(1).seen(1, 1);
        (void)lines();
        return *this;
    }

    // --- what this node does ---
    LinkStory& says(ToCoordinator message) { return happens(Submit{std::move(message)}); }
    LinkStory& asks(int round, int rank, FromWorker request) {
        return happens(Submit{StoreAsked{round, rank, std::move(request)}});
    }

    [[nodiscard]] const NodeLink& link() const { return link_; }
    // The last actions as they are, for what lines do not show.
    [[nodiscard]] const NodeLink::Actions& actions() const { return actions_; }

  private:
    void take(NodeLink::Actions actions) {
        for (const auto& action : actions) lines_.push_back(in_words(action, start_));
        if (!actions.empty()) actions_ = std::move(actions);
    }

    NodeLink link_;
    TimePoint start_ = TimePoint{} + 1000h;
    TimePoint now_ = start_;
    std::uint64_t sequence_ = 0;
    Lines lines_;
    NodeLink::Actions actions_;
};

}  // namespace ddrun::testing
