#include "worker_sdk/src/worker_state.hpp"

#include "worker_sdk/src/control/agent_store.hpp"
#include "worker_sdk/src/local/local_store.hpp"
#include "worker_sdk/src/log_state.hpp"

#include <unistd.h>

#include <string>

namespace ddrun {
namespace {

std::unique_ptr<Log::State> log_state(const WorkerEnv& env) {
    auto state = std::make_unique<Log::State>();
    state->rank = env.rank;
    state->round = env.round;
    state->console_is_terminal =
        env.agent_socket.empty() ? ::isatty(STDOUT_FILENO) == 1 : env.console_is_terminal;
    if (!env.log_dir.empty()) state->use_directory(env.log_dir);
    return state;
}

}  // namespace

Worker::State::State(WorkerEnv environment, const WorkerOptions& chosen)
    : env(std::move(environment)),
      options(chosen),
      log(log_state(env)),
      groups({env, options, guard, stop, end_watch, link, store}) {
    if (is_alone())
        store = std::make_unique<detail::LocalStore>();
    else
        connect();
}

void Worker::State::connect() {
    const TimePoint deadline = std::chrono::steady_clock::now() + options.agent_timeout;
    link = std::make_unique<detail::ControlLink>(
        detail::connect_to_agent(env.agent_socket, deadline),
        [this](int signal, std::optional<TimePoint> until) { stop.request(signal, until); });
    link->listen_to_end([this](const detail::Failure& failure) {
        stop.end_because(failure);
        end_watch.announce(failure);
    });
    (void)link->ask(
        rendezvous::WorkerHello{rendezvous::worker_protocol_version, env.round, env.rank},
        "joining the agent of this node", options.agent_timeout);
    store = std::make_unique<detail::AgentStore>(*link);
}

}  // namespace ddrun
