#include "worker_sdk/src/worker_state.hpp"

#include "worker_sdk/src/control/agent_store.hpp"
#include "worker_sdk/src/cpu/presence.hpp"
#include "worker_sdk/src/local/local_store.hpp"
#include "worker_sdk/src/local/solo_group.hpp"
#include "worker_sdk/src/log_state.hpp"

#include <sched.h>
#include <unistd.h>

#include <string>

namespace ddrun {
namespace {

constexpr const char* arena_name = "ddrun.group";
// A rank's way in and out for buffers outside the arena: two halves that fit the second-level cache
// together with what they are copied from.
constexpr std::size_t window_bytes = 512 * 1024;
// About 40 us of looking before a futex sleep, which costs about as much. With fewer cores than
// ranks the one that is waited for needs the core.
constexpr int spins_on_own_core = 1000;
constexpr int spins_on_shared_core = 20;

int spins_for(int local_world_size) {
    cpu_set_t allowed;
    const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    return known && CPU_COUNT(&allowed) >= local_world_size ? spins_on_own_core
                                                            : spins_on_shared_core;
}

std::unique_ptr<Log::State> log_state(const WorkerEnv& env) {
    auto state = std::make_unique<Log::State>();
    state->rank = env.rank;
    state->round = env.round;
    state->console_is_terminal =
        env.agent_socket.empty() ? ::isatty(STDOUT_FILENO) == 1 : env.console_is_terminal;
    if (!env.log_dir.empty()) state->use_directory(env.log_dir);
    return state;
}

detail::Fault fault_of(const detail::Failure& failure) {
    if (failure.kind == ErrorKind::agent_lost) return {detail::Fault::Kind::agent_lost, -1, -1};
    return {detail::Fault::Kind::peer_lost, static_cast<std::int16_t>(failure.rank), -1};
}

}  // namespace

Worker::State::State(WorkerEnv environment, const WorkerOptions& chosen)
    : env(std::move(environment)), options(chosen), log(log_state(env)) {
    if (is_alone())
        store = std::make_unique<detail::LocalStore>();
    else
        connect();
}

Worker::State::~State() {
    if (shared_group == nullptr || guard.in_child()) return;
    link->listen_to_end(nullptr);
    link->run_there([this] { detail::leave(shared_group->own_slot()); });
}

void Worker::State::connect() {
    const TimePoint deadline = std::chrono::steady_clock::now() + options.agent_timeout;
    link = std::make_unique<detail::ControlLink>(
        detail::connect_to_agent(env.agent_socket, deadline),
        [this](int signal, std::optional<TimePoint> until) { stop.request(signal, until); });
    link->listen_to_end([this](const detail::Failure& failure) { stop.end_because(failure); });
    (void)link->ask(
        rendezvous::WorkerHello{rendezvous::worker_protocol_version, env.round, env.rank},
        "joining the agent of this node", options.agent_timeout);
    store = std::make_unique<detail::AgentStore>(*link);
}

void Worker::State::make_group() {
    guard.check();
    if (env.world_size == 1)
        group = std::make_unique<detail::SoloGroup>(options.shared_bytes_per_rank);
    else if (env.node_count > 1 || env.local_world_size != env.world_size)
        throw Error(ErrorKind::invalid_use,
                    "the process group joins the ranks of one node, but the world of " +
                        std::to_string(env.world_size) + " ranks is on " +
                        std::to_string(env.node_count) + " nodes");
    else
        make_shared_group();
}

void Worker::State::make_shared_group() {
    detail::GroupHooks hooks;
    hooks.wants_stop = [this] { return stop.is_wanted(); };
    hooks.stop_is_agreed = [this] { stop.agree(); };
    hooks.blame = [this](int rank, const std::string& words) {
        stop.end();
        link->blame(rank, words);
    };
    hooks.cause = [this] { return stop.cause(); };
    auto made = std::make_unique<detail::SharedGroup>(
        open_arena(),
        detail::SharedGroup::Settings{env.rank, options.collective_timeout,
                                      spins_for(env.local_world_size)},
        std::move(hooks));
    shared_group = made.get();
    group = std::move(made);
    link->run_there([this] { detail::enter(shared_group->own_slot()); });
    link->listen_to_end([this](const detail::Failure& failure) {
        stop.end_because(failure);
        shared_group->break_up(fault_of(failure));
    });
    stop.use_agreement();
}

std::unique_ptr<detail::Arena> Worker::State::open_arena() {
    const detail::ArenaShape shape{env.local_world_size, window_bytes,
                                   options.shared_bytes_per_rank};
    const auto reply = link->ask(rendezvous::ArenaOpen{0, arena_name, shape.total()},
                                 "opening the process group", Store::answer_timeout);
    if (!reply.descriptor)
        throw AgentLost("opening the process group: the agent sent no shared memory");
    return std::make_unique<detail::Arena>(reply.descriptor, shape);
}

}  // namespace ddrun
