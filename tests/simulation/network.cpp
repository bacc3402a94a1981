#include "tests/simulation/network.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;
using rendezvous::FromNode;
using rendezvous::FromServer;

constexpr Duration connect_patience = 10s;

}  // namespace

int Network::add_node(int machine, NodeEars ears) {
    nodes_.push_back({machine, std::move(ears)});
    return static_cast<int>(nodes_.size()) - 1;
}

void Network::server_listens(int machine, ServerEars ears) {
    server_machine_ = machine;
    server_ = std::move(ears);
    listening_ = true;
    server_silent_ = false;
}

void Network::server_ends(bool in_silence) {
    listening_ = false;
    server_silent_ = in_silence;
    for (auto& [id, connection] : connections_) {
        if (!std::exchange(connection.server_open, false)) continue;
        connection.down.items.clear();
        if (!in_silence) tell_node_lost(id);
    }
}

void Network::node_ends(int node, bool in_silence) {
    for (auto& [id, connection] : connections_) {
        if (connection.node != node || !std::exchange(connection.node_open, false)) continue;
        connection.node_silent = in_silence;
        if (in_silence) {
            connection.up.items.clear();
        } else {
            tell_server_gone(id);
        }
    }
}

// --- connecting ---------------------------------------------------------------------------------

ConnectionId Network::connect(int node) {
    const ConnectionId id = ++last_;
    connections_[id].node = node;
    const auto fail = [=, this](const std::string& words) {
        Connection& connection = connections_.at(id);
        if (!connection.node_open || connection.server_open) return;
        connection.node_open = false;
        nodes_[static_cast<std::size_t>(node)].ears.failed(id, words);
    };
    if (scenario_.name_is_missing()) {
        timeline_.in(delay(), [=] { fail("Name or service not known"); });
    } else {
        timeline_.in(delay(), [=, this] { syn(id, 0); });
        timeline_.in(connect_patience, [=] { fail("timed out"); });
    }
    return id;
}

void Network::syn(ConnectionId id, int tries) {
    Connection& connection = connections_.at(id);
    if (!connection.node_open || tries > 10) return;
    if (is_cut(connection.node)) {
        return timeline_.at(healed(connection.node) + delay(), [=, this] { syn(id, tries + 1); });
    }
    if (server_silent_) return;
    if (!listening_) {
        return push(id, Way::down, [=, this] {
            Connection& refused = connections_.at(id);
            if (!std::exchange(refused.node_open, false)) return;
            nodes_[static_cast<std::size_t>(refused.node)].ears.failed(id, "Connection refused");
        });
    }
    connection.server_open = true;
    push(id, Way::down, [=, this] {
        const Connection& opened = connections_.at(id);
        if (opened.node_open) nodes_[static_cast<std::size_t>(opened.node)].ears.opened(id);
    });
}

void Network::post(int node, FromNode message) {
    const ConnectionId id = ++last_;
    connections_[id].node = node;
    timeline_.in(delay(), [=, this, message = std::move(message)] {
        syn(id, 0);
        from_node(id, message);
    });
}

// --- talking ------------------------------------------------------------------------------------

void Network::from_node(ConnectionId id, FromNode message) {
    push(id, Way::up, [=, this, message = std::move(message)] {
        const Connection& connection = connections_.at(id);
        if (connection.server_open && !connection.broken) return server_.said(id, message);
        if (!connection.forgotten && !server_silent_) tell_node_lost(id);
    });
}

void Network::from_server(ConnectionId id, FromServer message) {
    push(id, Way::down, [=, this, message = std::move(message)] {
        const Connection& connection = connections_.at(id);
        if (connection.node_open && !connection.broken) {
            return nodes_[static_cast<std::size_t>(connection.node)].ears.said(id, message);
        }
        if (!connection.forgotten && !connection.node_silent) tell_server_gone(id);
    });
}

void Network::close_from_node(ConnectionId id) {
    Connection& connection = connections_.at(id);
    if (std::exchange(connection.node_open, false)) tell_server_gone(id);
}

void Network::close_from_server(ConnectionId id) {
    Connection& connection = connections_.at(id);
    if (std::exchange(connection.server_open, false)) tell_node_lost(id);
}

void Network::tell_node_lost(ConnectionId id) {
    push(id, Way::down, [=, this] {
        Connection& connection = connections_.at(id);
        if (!std::exchange(connection.node_open, false)) return;
        nodes_[static_cast<std::size_t>(connection.node)].ears.lost(id);
    });
}

void Network::tell_server_gone(ConnectionId id) {
    push(id, Way::up, [=, this] {
        Connection& connection = connections_.at(id);
        if (std::exchange(connection.server_open, false)) server_.gone(id);
    });
}

// --- pipes --------------------------------------------------------------------------------------

void Network::push(ConnectionId id, Way way, std::function<void()> arrive) {
    Connection& connection = connections_.at(id);
    Pipe& pipe = way == Way::up ? connection.up : connection.down;
    pipe.last_due = std::max(pipe.last_due, timeline_.now() + delay());
    pipe.items.push_back({pipe.last_due, std::move(arrive)});
    move(id, way);
}

void Network::move(ConnectionId id, Way way) {
    Connection& connection = connections_.at(id);
    Pipe& pipe = way == Way::up ? connection.up : connection.down;
    if (pipe.items.empty() || std::exchange(pipe.moves, true)) return;
    timeline_.at(pipe.items.front().due, [=, this] { arrive(id, way); });
}

void Network::arrive(ConnectionId id, Way way) {
    Connection& connection = connections_.at(id);
    Pipe& pipe = way == Way::up ? connection.up : connection.down;
    pipe.moves = false;
    if (pipe.items.empty()) return;  // lost by a reset
    auto& first = pipe.items.front();
    if (is_cut(connection.node)) {
        first.due = healed(connection.node) + delay();  // sent again
    } else if (first.due <= timeline_.now()) {
        const auto arrive = std::move(first.arrive);
        pipe.items.pop_front();
        arrive();
    }
    move(id, way);
}

// --- what goes wrong ----------------------------------------------------------------------------

void Network::cut(int machine, Duration lasts) {
    TimePoint& until = cut_until_[machine];
    until = std::max(until, timeline_.now() + lasts);
}

TimePoint Network::healed(int node) const {
    const int machine = nodes_[static_cast<std::size_t>(node)].machine;
    if (machine == server_machine_ || cut_until_.empty()) return {};
    const auto until = [this](int one) {
        const auto found = cut_until_.find(one);
        return found == cut_until_.end() ? TimePoint{} : found->second;
    };
    return std::max(until(machine), until(server_machine_));
}

void Network::reset(int node) {
    for (auto& [id, connection] : connections_) {
        if (connection.node == node && connection.node_open && connection.server_open) reset(id);
    }
}

// Both ends hear of it, at different times, or only one of them.
void Network::reset(ConnectionId id) {
    Connection& connection = connections_.at(id);
    connection.broken = true;
    connection.forgotten = scenario_.one_in(3);
    connection.up.items.clear();
    connection.down.items.clear();
    const int who_never_hears = scenario_.number(0, 3);
    if (who_never_hears != 0) {
        timeline_.in(scenario_.short_while(300'000), [=, this] { tell_node_lost(id); });
    }
    if (who_never_hears != 1) {
        timeline_.in(scenario_.short_while(300'000), [=, this] { tell_server_gone(id); });
    }
}

Duration Network::delay() {
    return scenario_.message_delay();
}

}  // namespace ddrun::simulation
