#pragma once

#include "rendezvous/core/service_events.hpp"
#include "rendezvous/protocol/node_messages.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/timeline.hpp"

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ddrun::simulation {

using rendezvous::ConnectionId;

// Connections between agents and the server, as TCP has them: in order, delayed, held up by a cut
// of the network until it heals, reset, half-open where one end died in silence. Nothing is called
// from inside a call.
class Network {
  public:
    struct NodeEars {  // of one agent process
        std::function<void(ConnectionId)> opened;
        std::function<void(ConnectionId, const std::string& words)> failed;
        std::function<void(ConnectionId, const rendezvous::FromServer&)> said;
        std::function<void(ConnectionId)> lost;
    };
    struct ServerEars {
        std::function<void(ConnectionId, const rendezvous::FromNode&)> said;
        std::function<void(ConnectionId)> gone;
    };

    Network(Timeline& timeline, Scenario& scenario) : timeline_(timeline), scenario_(scenario) {}

    // --- ends ---
    // `machine`: its number; connections inside one machine are never cut.
    [[nodiscard]] int add_node(int machine, NodeEars ears);
    void server_listens(int machine, ServerEars ears);
    // The server's process ended and its machine says so, or the machine is off.
    void server_ends(bool in_silence);
    // All connections of this agent process end.
    void node_ends(int node, bool in_silence);

    // --- what the ends do ---
    [[nodiscard]] ConnectionId connect(int node);
    void from_node(ConnectionId id, rendezvous::FromNode message);
    void from_server(ConnectionId id, rendezvous::FromServer message);
    void close_from_node(ConnectionId id);
    void close_from_server(ConnectionId id);
    // One message on a connection of its own, by the keeper of a dead agent.
    void post(int node, rendezvous::FromNode message);

    // --- what goes wrong ---
    // Nothing gets in or out of that machine.
    void cut(int machine, Duration lasts);
    // Every connection of `node` is reset; one end may never hear of it.
    void reset(int node);

  private:
    struct Pipe {
        struct Item {
            TimePoint due{};
            std::function<void()> arrive;
        };
        std::deque<Item> items;
        TimePoint last_due{};
        bool moves = false;
    };
    struct Connection {
        int node = 0;
        Pipe up;
        Pipe down;
        bool node_open = true;  // its end still wants to hear
        bool server_open = false;
        bool broken = false;     // nothing that is said gets through
        bool forgotten = false;  // and whoever says something is not told
        bool node_silent = false;
    };
    enum class Way { up, down };

    void push(ConnectionId id, Way way, std::function<void()> arrive);
    void move(ConnectionId id, Way way);
    void arrive(ConnectionId id, Way way);
    void syn(ConnectionId id, int tries);
    void reset(ConnectionId id);
    void tell_node_lost(ConnectionId id);
    void tell_server_gone(ConnectionId id);
    [[nodiscard]] TimePoint healed(int node) const;
    [[nodiscard]] bool is_cut(int node) const { return healed(node) > timeline_.now(); }
    [[nodiscard]] Duration delay();

    struct NodeEnd {
        int machine = 0;
        NodeEars ears;
    };
    static constexpr int no_machine = -1;

    Timeline& timeline_;
    Scenario& scenario_;
    std::vector<NodeEnd> nodes_;
    std::map<int, TimePoint> cut_until_;  // by machine
    ServerEars server_;
    int server_machine_ = no_machine;
    bool listening_ = false;
    bool server_silent_ = false;
    ConnectionId last_ = 0;
    std::map<ConnectionId, Connection> connections_;
};

}  // namespace ddrun::simulation
