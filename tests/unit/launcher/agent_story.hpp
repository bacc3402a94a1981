#pragma once

#include "tests/unit/launcher/story.hpp"

namespace ddrun::launcher::story {

// A node with one agent; the test plays its coordinator and its keeper, and turns the clock.
class AgentStory {
  public:
    explicit AgentStory(int slots, AgentRules rules = {})
        : slots_(slots), agent_(with_size(rules, slots)) {}

    Agent::Actions feed(const AgentEvent& event) { return agent_.step(event, now_); }
    Agent::Actions group(const GroupEvent& event) { return feed(AgentEvent(event)); }
    Agent::Actions hear(const rendezvous::FromCoordinator& message) {
        return feed(AgentEvent(message));
    }
    Agent::Actions signal(int number, int pid = 4242, int uid = 1000) {
        return feed(SignalArrived{number, pid, uid, false});
    }
    Agent::Actions end(int local_rank, ExitStatus status) {
        return group(WorkerExited{local_rank, status, {}});
    }

    Agent::Actions join() { return feed(Started{}); }
    Agent::Actions begin_round(int round, int first_rank = 0) {
        rendezvous::RoundGranted grant;
        grant.round = round;
        grant.world_size = first_rank + slots_;
        grant.first_rank = first_rank;
        grant.restart_count = round - 1;
        auto actions = hear(grant);
        for (int i = 0; i < slots_; ++i) (void)group(WorkerStarted{i, 100 * round + i});
        return actions;
    }
    // Joined, granted, all workers up.
    AgentStory& running(int round = 1) {
        if (round == 1) (void)join();
        (void)begin_round(round);
        return *this;
    }
    // All living workers answer the stop signal, then nothing is left.
    Agent::Actions everything_ends() {
        Agent::Actions all;
        for (int i = 0; i < slots_; ++i) {
            for (auto& action : end(i, killed_by(15))) all.push_back(std::move(action));
        }
        for (auto& action : group(TreesGone{})) all.push_back(std::move(action));
        return all;
    }

    Agent::Actions wait(Duration duration) {
        Agent::Actions all;
        const auto until = now_ + duration;
        for (auto due = agent_.next_deadline(); due && *due <= until;
             due = agent_.next_deadline()) {
            now_ = std::max(now_, *due);
            for (auto& action : agent_.advance_to(now_)) all.push_back(std::move(action));
        }
        now_ = until;
        return all;
    }

    [[nodiscard]] const Agent& agent() const { return agent_; }

  private:
    static AgentRules with_size(AgentRules rules, int slots) {
        rules.group.local_world_size = slots;
        rules.join.slots = slots;
        rules.node_name = rules.join.node_name = "n0";
        return rules;
    }

    int slots_;
    Agent agent_;
    TimePoint now_{1h};
};

// What the agent says to its coordinator, and what it asks of its workers.
template <class Message>
std::vector<Message> said(const Agent::Actions& actions) {
    std::vector<Message> found;
    for (const auto& say : all_of<Say>(actions)) {
        if (const auto* message = std::get_if<Message>(&say.message)) found.push_back(*message);
    }
    return found;
}
template <class Action>
std::vector<Action> asked(const Agent::Actions& actions) {
    std::vector<Action> found;
    for (const auto& group : all_of<GroupAction>(actions)) {
        if (const auto* action = std::get_if<Action>(&group)) found.push_back(*action);
    }
    return found;
}

// Answers of a coordinator.
inline rendezvous::StopRound stop_round(int round, const rendezvous::Cause& cause,
                                        bool restart = false) {
    rendezvous::StopRound stop;
    stop.round = round;
    stop.cause = cause;
    stop.will_restart = restart;
    stop.restarts_used = restart ? round : round - 1;
    stop.max_restarts = 10;
    return stop;
}
inline rendezvous::Verdict verdict(int exit_code, const rendezvous::Cause& cause) {
    return {exit_code, true, cause, 0, {}};
}

}  // namespace ddrun::launcher::story
