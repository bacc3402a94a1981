#pragma once

#include "rendezvous/core/delivery.hpp"
#include "rendezvous/core/store_memory.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// An agent's side of its connection to the rendezvous server: hello, resume, heartbeats,
// exactly-once delivery, what to present to a server that starts empty, when to fence. Not
// thread-safe; no clock.
namespace ddrun::rendezvous {

struct NodeLinkRules {
    JobTerms terms;
    Join offer;  // `address` may be empty: then the local address of the connection is offered
    std::string node_incarnation;
    std::string obituary_token;
    std::string build;
    std::string endpoint;                                   // as typed, for words
    Duration rendezvous_grace = std::chrono::seconds(60);   // --rendezvous-grace
    Duration retry_first = std::chrono::milliseconds(100);  // backoff: doubles to the limit
    Duration retry_limit = std::chrono::seconds(2);
    Duration progress_every = std::chrono::seconds(20);  // a line while waiting
    std::uint64_t jitter_seed = 0;  // shortens each backoff by up to a fifth; 0: exact
};

// Workers freeze so long before the lease ends: the server counts from when it heard us, we from
// when we sent, and freezing takes a moment.
[[nodiscard]] constexpr Duration lease_margin(Duration lease) {
    return std::min<Duration>(std::chrono::seconds(3), lease / 5);
}

// --- events -------------------------------------------------------------------------------------
struct ConnectionOpened {  // authenticated, nothing sent yet
    std::string local_address;
    std::string remote_address;        // handed back with ArmObituary
    bool remote_is_this_node = false;  // the endpoint is an address of this node
};
struct ConnectionFailed {  // this try; `fatal`: trying again cannot help (wrong key)
    std::string words;     // "Connection refused"
    bool fatal = false;
    int exit_code = 0;  // where fatal
};
struct ConnectionLost {  // closed or reset by the other end, or what came was malformed
    std::string words;
};
// Bytes came or went: a large message is on its way, so the server is not silent. Renews no lease.
struct ConnectionMoved {};
// To the coordinator or the store, on behalf of this node. A Join is ignored: the hello carries it.
struct Submit {
    ToJob payload;
};
// The round is being stopped here: open store requests of it are answered `aborted` with these
// words, and so is every later one.
struct AbortWaits {
    std::int32_t round = 0;
    std::string words;
};
// This node's part is over: say so to the server and close. `processes_left`: some could not be
// killed, so the server must not take this node for gone.
struct NodeFinished {
    bool processes_left = false;
};
using NodeLinkEvent = std::variant<ConnectionOpened, ConnectionFailed, ConnectionLost,
                                   ConnectionMoved, FromServer, Submit, AbortWaits, NodeFinished>;

// --- actions ------------------------------------------------------------------------------------
struct OpenConnection {};   // resolve afresh, connect, authenticate; ends in Opened or Failed
struct CloseConnection {};  // or give up opening it; nothing more is heard of it, no ConnectionLost
struct SendToServer {
    FromNode message;
};
struct Deliver {  // to the Agent core, or to a worker of the round
    FromJob payload;
};
enum class FenceStep {
    freeze,  // contact is lost: SIGSTOP the workers before the lease ends
    thaw,    // the server confirmed the round
    kill,    // the server named another round, or the grace ended
};
struct Fence {
    FenceStep step = FenceStep::freeze;
    std::string words;  // why, one line for people
};
// The keeper freezes the workers by itself once this time has passed without a later one: the agent
// may be stopped or hang. TimePoint::max(): the job is over, nobody has to be fenced.
struct LeaseUntil {
    TimePoint until{};
};
// Welcome came: this is who to tell if the agent dies.
struct ArmObituary {
    std::string server_address;  // of the connection
};
using NodeLinkAction = std::variant<OpenConnection, CloseConnection, SendToServer, Deliver, Fence,
                                    LeaseUntil, ArmObituary>;

// States, each with what it waits for:
//   created    the first call
//   opening    Opened or Failed
//   greeting   NodeWelcome or NodeRefused
//   welcomed   anything from the server
//   waiting    the time of the next try
//   over       NodeFinished: there was a verdict and there is no connection
//   parting    the server's sign that it heard the last of us, 1 s at most
//   closed     nothing: no action comes any more
// A connection that is lost after the verdict is not opened again, unless this node leaves a job
// that goes on and still has processes of a round.
class NodeLink {
  public:
    using Actions = std::vector<NodeLinkAction>;

    explicit NodeLink(NodeLinkRules rules);

    [[nodiscard]] Actions step(NodeLinkEvent event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // NodeFinished was said and nothing more is to be sent.
    [[nodiscard]] bool finished() const { return state_ == State::closed; }
    // One line for -vv, logs and failing tests.
    [[nodiscard]] std::string describe() const;

  private:
    enum class State { created, opening, greeting, welcomed, waiting, over, parting, closed };
    enum class FenceState { clear, frozen, killed };
    struct Posted {
        Ticket ticket = 0;
        Kept payload;
    };
    struct SentHeartbeat {
        std::uint64_t number = 0;
        TimePoint at{};
    };

    void on(const ConnectionOpened& event, TimePoint now);
    void on(const ConnectionFailed& event, TimePoint now);
    void on(const ConnectionLost& event, TimePoint now);
    void on(const ConnectionMoved&, TimePoint) {}  // step() has noted it
    void on(FromServer& event, TimePoint now);
    void on(Submit& event, TimePoint now);
    void on(const AbortWaits& event, TimePoint now);
    void on(const NodeFinished& event, TimePoint now);

    void on(const NodeWelcome& welcome, TimePoint now);
    void on(const NodeRefused& refusal, TimePoint now);
    void on(const HeartbeatSeen& seen, TimePoint now);
    void on(FromServerPayload& payload, TimePoint now);

    // From the job, on its way to the agent and the workers.
    void pass_on(FromCoordinator& message, TimePoint now);
    void pass_on(StoreAnswered& answer, TimePoint now);
    void release_held(TimePoint now);
    void deliver(FromCoordinator& message, TimePoint now);
    void note(const RoundGranted& grant);
    void note(const StopRound& stop);
    void note(const Verdict& verdict);
    void note(const Parked&) {}
    void note(const Notice&) {}

    // From the agent and the workers, on its way to the job.
    void submit(ToCoordinator& message, TimePoint now);
    void submit(StoreAsked& asked, TimePoint now);
    void submit(StoreForgotten& forgotten, TimePoint now);
    [[nodiscard]] bool note(const ToCoordinator& message);  // true: a server may lose it
    void post(Kept payload);
    void send(std::uint64_t sequence, const Posted& posted);
    void resend();
    void present(TimePoint now);
    void answer(const StoreAsked& asked, StoreError error, std::string words);

    // Each looks at one kind of deadline.
    void pass_time(TimePoint now);
    void watch_connection(TimePoint now);
    void watch_tries(TimePoint now);
    void watch_contact(TimePoint now);
    void watch_lease(TimePoint now);

    void open(TimePoint now);
    void try_again(TimePoint now, std::string reason);
    void lose(TimePoint now, TimePoint since, const std::string& reason);
    void close_connection();
    void heartbeat(TimePoint now);
    void renew_lease(TimePoint heard_from);
    void confirm_round(std::int32_t round, TimePoint now);
    void contact_is_back(TimePoint now);
    [[nodiscard]] NodeHello hello() const;
    [[nodiscard]] Duration backoff() const;
    [[nodiscard]] Duration silence_limit() const;

    void notice(std::string words, bool warning);
    void fence(FenceStep step, std::string words);
    void end_with(int exit_code, std::string words);

    [[nodiscard]] bool was_welcomed() const { return !job_incarnation_.empty(); }
    [[nodiscard]] bool is_trying() const;
    [[nodiscard]] bool holds_processes() const;
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] std::string tries_in_words(TimePoint now) const;
    [[nodiscard]] std::string_view name_of_state() const;

    NodeLinkRules rules_;
    State state_ = State::created;

    // Tries, before the first welcome or since contact was lost.
    TimePoint trying_since_{};
    int tries_ = 0;
    std::string last_reason_;
    TimePoint next_try_{};
    TimePoint next_progress_{};
    bool told_to_wait_ = false;  // NodeRefused{retry_later}: said once

    // The connection.
    ConnectionOpened connection_;
    TimePoint greeted_{};
    TimePoint last_heard_{};
    TimePoint next_heartbeat_{};
    std::uint64_t heartbeats_ = 0;
    std::deque<SentHeartbeat> unseen_;
    std::optional<TimePoint> loopback_hint_;  // when to say that only this machine can join
    TimePoint part_by_{};

    // Contact and fence.
    std::optional<TimePoint> lost_since_;
    TimePoint lease_end_{};  // ours: the margin is taken off
    FenceState fence_ = FenceState::clear;

    // What is said and heard exactly once.
    std::string job_incarnation_;
    Outbox<Posted> outbox_;
    Inbox inbox_;
    std::deque<FromCoordinator>
        held_;  // a grant that came after the end of the lease, and the rest
    Ticket last_ticket_ = 0;
    std::map<Ticket, Kept> unsettled_;  // failures and leaves that no stop or verdict has answered
    bool leaving_ = false;
    Standing standing_;
    StoreMemory memory_;
    std::optional<std::string> aborted_;  // the round's waits

    Actions out_;  // of the step being made
};

}  // namespace ddrun::rendezvous
