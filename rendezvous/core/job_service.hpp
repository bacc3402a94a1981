#pragma once

#include "rendezvous/core/coordinator.hpp"
#include "rendezvous/core/delivery.hpp"
#include "rendezvous/core/membership.hpp"
#include "rendezvous/core/round_store.hpp"
#include "rendezvous/core/service_events.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ddrun::rendezvous {

struct ServiceSettings {
    std::string job_id;
    std::string incarnation;  // 128 random bits in hex; given up where nodes of another one resume
    std::uint64_t jitter_seed = 0;
    std::string build;  // "0.1.0", for words
};

struct NodeStatus {
    std::string name;
    std::string address;
    int node_rank = -1;  // -1: in no round
    int first_rank = -1;
    int slots = 1;
    std::string state;  // as MemberStatus::state
    Duration silent_for{};
};
struct JobStatus {
    std::string job_id;
    std::string incarnation;
    std::string state;  // of the coordinator: "forming", "running" ...; "new" before anybody came
    int round = 0;
    int world_size = 0;
    int restarts_used = 0;
    int max_restarts = 0;
    std::optional<int> exit_code;  // of the verdict
    std::vector<NodeStatus> nodes;
};

// One job at its rendezvous server: who is here (Membership), what they do (Coordinator), the keys
// of the round (RoundStore), and what was said and heard exactly once. Not thread-safe; no clock.
class JobService {
  public:
    using Actions = std::vector<ServiceAction>;

    explicit JobService(ServiceSettings settings);

    [[nodiscard]] Actions step(const ServiceEvent& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // Everybody who came is gone again, with a goodbye or without: the next job of this id is
    // another one.
    [[nodiscard]] bool forgettable() const;
    [[nodiscard]] JobStatus status(TimePoint now) const;
    [[nodiscard]] std::string describe() const;

  private:
    struct Node {
        NodeHello hello;  // the first one; `standing` of the last
        ConnectionId connection = 0;
        Outbox<FromJob> outbox;
        Inbox inbox;
        bool presenting = false;  // says what it knows of the store; hears nothing before
        bool repeating = false;   // then what may be lost; its next heartbeat ends that
        int clear_round = 0;      // none of its processes of that round is left
        bool leaving = false;
    };

    void on(const PeerSaid& event, TimePoint now);
    void on(const PeerGone& event, TimePoint now);
    void on(const ServerWasSlow& event, TimePoint now);

    void said(int node, const NodeHello& hello, TimePoint now);
    void said(int node, const Heartbeat& heartbeat, TimePoint now);
    void said(int node, const FromNodePayload& payload, TimePoint now);
    void said(int node, const PresentKeys& keys, TimePoint now);
    void said(int node, const Goodbye& goodbye, TimePoint now);
    void said(int node, const Obituary& obituary, TimePoint now);

    // --- hello
    void greet(ConnectionId connection, const NodeHello& hello, TimePoint now);
    [[nodiscard]] std::optional<NodeRefused> refusal(const NodeHello& hello) const;
    [[nodiscard]] std::string mismatch(const NodeHello& hello) const;
    void refuse(ConnectionId connection, NodeRefused refusal);
    void end_all_because(const std::string& words);
    [[nodiscard]] JobRules rules() const;
    int take_in(ConnectionId connection, const NodeHello& hello, TimePoint now);
    void resume(int node, ConnectionId connection, const NodeHello& hello, TimePoint now);
    void recover(ConnectionId connection, const NodeHello& hello, TimePoint now);
    void hang_up(int node, TimePoint now);
    void welcome(int node, bool present_keys);
    void warn_of_another_command(const NodeHello& hello);

    // --- payloads
    void take(int node, const ToCoordinator& message, TimePoint now);
    void take(int node, const StoreAsked& asked, TimePoint now);
    void take(int node, const StoreForgotten& forgotten, TimePoint now);

    void lose(int node, std::string words, bool announced, bool proven, TimePoint now);
    void tell_coordinator(const CoordinatorEvent& event, TimePoint now);
    void perform(const Coordinator::Actions& answers, TimePoint now);
    void perform(RoundStore::Actions answers);
    void close_recovery(TimePoint now);
    [[nodiscard]] bool all_presented() const;

    void tell(int node, FromJob payload);
    void tell_all(const Notice& notice);
    void resend(int node);  // what it has not heard
    void send(int node, std::uint64_t sequence, const FromJob& payload);
    void say(ConnectionId connection, FromServer message);
    void forget(int node);

    ServiceSettings settings_;
    std::optional<JobTerms> terms_;
    std::string terms_from_;  // the node whose terms they are
    std::uint64_t command_digest_ = 0;
    bool told_of_commands_ = false;  // that nodes run different ones
    std::string nccl_version_;
    std::string nccl_from_;
    std::optional<Coordinator> coordinator_;
    Membership membership_;
    RoundStore store_;
    std::map<int, Node> nodes_;
    std::unordered_map<std::string, int> by_incarnation_;
    std::unordered_map<ConnectionId, int> by_connection_;
    std::unordered_map<std::string, std::string> expelled_;  // why, by node incarnation
    int last_node_ = -1;
    std::optional<TimePoint> recovery_ends_;
    std::optional<Verdict> verdict_;
    bool somebody_came_ = false;
    Actions out_;  // of the step being made
};

}  // namespace ddrun::rendezvous
