// What a seed means for several nodes: who comes when, and what goes wrong between them.
#include "tests/simulation/scenario.hpp"

#include <algorithm>

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds ms(int count) {
    return std::chrono::milliseconds(count);
}

}  // namespace

void Scenario::draw_cluster() {
    const int nodes = dice_.one_in(6) ? dice_.number(5, 8) : dice_.number(2, 4);
    cluster.emplace();
    draw_terms(*cluster, nodes);
    draw_arrivals(*cluster, nodes);
    draw_cluster_troubles(*cluster);
    for (const Arrival& arrival : cluster->arrivals) slots.push_back(arrival.slots);
}

void Scenario::draw_terms(Cluster& drawn, int nodes) {
    rendezvous::JobTerms& terms = drawn.terms;
    terms.job_id = "job";
    terms.spares = nodes > 2 && dice_.one_in(3) ? 1 : 0;
    terms.max_nodes = nodes - terms.spares;
    terms.min_nodes = dice_.one_in(2) ? terms.max_nodes : dice_.number(1, terms.max_nodes);
    terms.max_restarts = rules.max_restarts;
    terms.no_restart_on = rules.no_restart_on;
    terms.crash_loop = rules.crash_loop;
    constexpr Duration leases[] = {3s, 5s, 15s, 15s};
    terms.lease = leases[dice_.number(0, 3)];
    terms.heartbeat = terms.lease / 15;
    terms.join_timeout = ms(dice_.number(20'000, 90'000));
    terms.last_call = ms(dice_.number(100, dice_.one_in(2) ? 2'000 : 20'000));
    drawn.grace = dice_.one_in(2) ? Duration(60s) : terms.lease + 5s;
    drawn.uses_store = dice_.one_in(2);
    drawn.server_restarts = drawn.uses_store && dice_.one_in(4);
    drawn.embedded = !drawn.server_restarts && dice_.one_in(2);
    drawn.server_starts = ms(dice_.one_in(6) ? dice_.number(0, 15'000) : 0);
    drawn.state_file = !drawn.embedded && dice_.one_in(2);
    drawn.store_program = dice_.number(1, 24);
    drawn.store_pause_us = dice_.one_in(2) ? 1'000 : 3'000'000;
    drawn.names_missing_one_in = dice_.one_in(8) ? dice_.number(2, 20) : 0;
    drawn.slow_message_us = dice_.one_in(8) ? 300'000 : 2'000;
    drawn.clocks_differ = !dice_.one_in(4);
}

void Scenario::draw_arrivals(Cluster& drawn, int nodes) {
    const bool wishes = dice_.one_in(4);
    const bool same_slots = dice_.one_in(2);
    const int some_slots = dice_.number(1, 3);
    const int late_one_in = dice_.one_in(4) ? 3 : 0;
    for (int node = 0; node < nodes; ++node) {
        Arrival arrival{node, ms(dice_.number(0, 100)),
                        same_slots ? some_slots : dice_.number(1, 3), -1};
        const bool spare = node >= drawn.terms.max_nodes;
        if (wishes && !spare) arrival.wished_rank = node;
        if (late_one_in > 0 && dice_.one_in(late_one_in))
            arrival.when = ms(dice_.number(0, 25'000));
        drawn.arrivals.push_back(arrival);
    }
    if (drawn.embedded) drawn.arrivals.front().when = drawn.server_starts;
    if (dice_.one_in(8)) {  // one too many
        drawn.arrivals.push_back({nodes, ms(dice_.number(0, 20'000)), some_slots, -1});
    }
}

void Scenario::draw_cluster_troubles(Cluster& drawn) {
    if (drawn.server_restarts) {
        troubles.push_back({0, ms(dice_.number(100, 6'000)), Trouble::Kind::server_crash, 0,
                            ms(dice_.number(100, 3'000))});
    }
    if (dice_.one_in(8)) return;
    const int count = dice_.one_in(3) ? dice_.number(2, 5) : 1;
    for (int i = 0; i < count; ++i) {
        add_trouble(drawn, ms(dice_.number(0, dice_.one_in(2) ? 3'000 : 30'000)));
    }
}

void Scenario::add_trouble(Cluster& drawn, Duration when) {
    using Kind = Trouble::Kind;
    constexpr Kind kinds[] = {
        Kind::stop,          Kind::second_stop,   Kind::stop_everybody,
        Kind::keeper_dies,   Kind::shell_fails,   Kind::ctrl_z,
        Kind::power_off,     Kind::power_off,     Kind::agent_killed,
        Kind::agent_killed,  Kind::agent_stopped, Kind::agent_stopped,
        Kind::cut,           Kind::cut,           Kind::cut,
        Kind::cut_all,       Kind::reset,         Kind::reset_all,
        Kind::server_crash,  Kind::server_crash,  Kind::server_crash,
        Kind::server_stalls,
    };
    constexpr int signals[] = {15, 2, 1};
    Trouble trouble;
    trouble.kind = kinds[dice_.number(0, static_cast<int>(std::size(kinds)) - 1)];
    trouble.node = dice_.number(0, static_cast<int>(drawn.arrivals.size()) - 1);
    trouble.when = when;
    trouble.signal = signals[dice_.number(0, 2)];
    trouble.lasts = ms(dice_.number(100, dice_.one_in(2) ? 3'000 : 60'000));
    if (trouble.kind == Kind::server_crash && dice_.one_in(8)) trouble.lasts = for_ever;
    troubles.push_back(trouble);
    replace(drawn, trouble);
    if (trouble.kind == Kind::cut && dice_.one_in(3)) {
        trouble.node = dice_.number(0, static_cast<int>(drawn.arrivals.size()) - 1);
        troubles.push_back(trouble);
    }
}

// Somebody starts it again, on the same machine.
void Scenario::replace(Cluster& drawn, const Trouble& lost) {
    using Kind = Trouble::Kind;
    const bool ends_the_node = lost.kind == Kind::power_off || lost.kind == Kind::agent_killed ||
                               lost.kind == Kind::keeper_dies || lost.kind == Kind::stop;
    if (!ends_the_node || dice_.one_in(3)) return;
    Arrival again = drawn.arrivals[static_cast<std::size_t>(lost.node)];
    again.when = std::max(lost.when, again.when) + ms(dice_.number(50, 15'000));
    drawn.arrivals.push_back(again);
}

Duration Scenario::message_delay() {
    if (!cluster) return {};
    if (cluster->slow_message_us > 2'000 && !dice_.one_in(20)) return short_while(2'000);
    return short_while(cluster->slow_message_us);
}

bool Scenario::name_is_missing() {
    return cluster->names_missing_one_in > 0 && dice_.one_in(cluster->names_missing_one_in);
}

}  // namespace ddrun::simulation
