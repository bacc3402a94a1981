#pragma once

#include "rendezvous/core/delivery.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
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
    std::uint64_t jitter_seed = 0;
};

// --- events -------------------------------------------------------------------------------------
struct ConnectionOpened {  // authenticated, nothing sent yet
    std::string local_address;
    std::string remote_address;
    bool remote_is_this_node = false;
};
struct ConnectionFailed {  // this try; `fatal`: trying again cannot help (wrong key)
    std::string words;
    bool fatal = false;
    int exit_code = 0;  // where fatal
};
struct ConnectionLost {
    std::string words;
};
struct Submit {  // to the coordinator or the store, on behalf of this node
    ToJob payload;
};
using NodeLinkEvent =
    std::variant<ConnectionOpened, ConnectionFailed, ConnectionLost, FromServer, Submit>;

// --- actions ------------------------------------------------------------------------------------
struct OpenConnection {};  // resolve afresh, connect, authenticate; ends in Opened or Failed
struct CloseConnection {};
struct SendToServer {
    FromNode message;
};
struct Deliver {  // to the Agent core, or to a worker of the round
    FromJob payload;
};
enum class FenceStep {
    freeze,  // contact is lost: SIGSTOP the workers before the lease ends
    thaw,    // the server confirmed the round
    kill,    // the server named a later round, or the grace ended
};
struct Fence {
    FenceStep step = FenceStep::freeze;
    std::string words;
};
// The keeper freezes the workers by itself once this time has passed without a later one: the agent
// may be stopped or hang.
struct LeaseUntil {
    TimePoint until{};
};
// Welcome came: this is who to tell if the agent dies.
struct ArmObituary {
    std::string server_address;  // of the connection
};
using NodeLinkAction = std::variant<OpenConnection, CloseConnection, SendToServer, Deliver, Fence,
                                    LeaseUntil, ArmObituary>;

}  // namespace ddrun::rendezvous
