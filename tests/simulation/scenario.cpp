#include "tests/simulation/scenario.hpp"

namespace ddrun::simulation {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds ms(int count) {
    return std::chrono::milliseconds(count);
}

}  // namespace

Scenario::Scenario(std::uint64_t seed) : dice_(seed) {
    if (dice_.one_in(4)) {
        slots.push_back(dice_.number(1, 4));
        draw_rules();
        draw_troubles();
    } else {
        draw_rules();
        draw_cluster();
    }
}

void Scenario::draw_rules() {
    rules.max_restarts = dice_.number(0, 3);
    rules.crash_loop = dice_.one_in(6) ? 2 : 0;
    if (dice_.one_in(6)) rules.no_restart_on = {3};
    rules.jitter_seed = dice_.bits();
    constexpr Duration graces[] = {100ms, 1s, 5s, 30s};
    group.shutdown_timeout = graces[dice_.number(0, 3)];
    if (dice_.one_in(4)) group.hang_timeout = 2s;
    if (dice_.one_in(6)) group.early_exit_timeout = 1s;
    failing_one_in_ = dice_.one_in(3) ? 0 : dice_.number(1, 12);
    refused_one_in_ = dice_.one_in(10) ? dice_.number(1, 8) : 0;
    stuck_one_in_ = dice_.one_in(10) ? dice_.number(1, 6) : 0;
    work_ = dice_.one_in(3) ? ms(dice_.number(1, 50)) : ms(dice_.number(100, 15000));
}

void Scenario::draw_troubles() {
    const auto random_node = [&] { return dice_.number(0, rules.nodes - 1); };
    const auto some_time = [&] { return ms(dice_.number(0, dice_.one_in(2) ? 100 : 20000)); };
    const auto add = [&](int one_in, Trouble::Kind kind) {
        if (!dice_.one_in(one_in)) return;
        constexpr int signals[] = {15, 2, 1};
        troubles.push_back({random_node(), some_time(), kind, signals[dice_.number(0, 2)],
                            ms(dice_.number(10, 20000))});
    };
    add(4, Trouble::Kind::stop);
    add(6, Trouble::Kind::stop);
    add(12, Trouble::Kind::second_stop);
    add(12, Trouble::Kind::stop_everybody);
    add(20, Trouble::Kind::keeper_dies);
    add(30, Trouble::Kind::shell_fails);
    add(8, Trouble::Kind::usr1);
    add(10, Trouble::Kind::ctrl_z);
}

WorkerScript Scenario::next_worker(int world_size) {
    using Fate = WorkerScript::Fate;
    WorkerScript script;
    script.start_delay = short_while(500);
    if (refused_one_in_ > 0 && dice_.one_in(refused_one_in_)) {
        script.refused_with = dice_.one_in(2) ? 127 : 71;
    }
    script.life = work_ + short_while(5000);
    if (failing_one_in_ > 0 && dice_.one_in(failing_one_in_)) {
        script.fate = static_cast<Fate>(dice_.number(1, 5));
        script.life = ms(dice_.number(0, 2000));
        script.code =
            script.fate == Fate::is_killed ? (dice_.one_in(3) ? 15 : 11) : dice_.number(1, 4);
    }
    script.blamed_rank = dice_.number(0, world_size - 1);
    script.answer = static_cast<Answer>(dice_.number(0, 4));
    script.answer_delay = ms(dice_.number(0, 3000));
    script.uses_sdk = dice_.one_in(2);
    script.step_every = ms(dice_.number(50, 1500));
    script.uses_store = cluster && cluster->uses_store;
    script.helpers = dice_.one_in(3) ? dice_.number(1, 2) : 0;
    if (stuck_one_in_ > 0 && dice_.one_in(stuck_one_in_)) {
        script.stuck = dice_.one_in(2) ? Duration(ms(dice_.number(1, 20000))) : Duration(24h);
    }
    return script;
}

}  // namespace ddrun::simulation
