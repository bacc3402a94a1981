#pragma once

#include "rendezvous/protocol/worker_env.hpp"
#include "worker_sdk/src/control/control_link.hpp"
#include "worker_sdk/src/end_watch.hpp"
#include "worker_sdk/src/fork_guard.hpp"
#include "worker_sdk/src/group_maker.hpp"
#include "worker_sdk/src/stop_state.hpp"

#include <ddrun/worker.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun {

// Members end in reverse order: the group before the link it tells, the link before the stop state.
struct Worker::State {
    State(WorkerEnv environment, const WorkerOptions& chosen);

    [[nodiscard]] bool is_alone() const { return env.agent_socket.empty(); }
    void connect();
    // How often it was asked before for `name`.
    [[nodiscard]] int next_nccl_call(std::string_view name);

    WorkerEnv env;
    WorkerOptions options;
    detail::ForkGuard guard;
    detail::StopState stop;
    detail::EndWatch end_watch;
    std::unique_ptr<detail::ControlLink> link;  // null: alone
    std::unique_ptr<Store> store;
    Log log;
    std::mutex mutex;  // the making of the rest
    std::optional<Device> device;
    std::map<std::string, int> nccl_calls;  // by name
    detail::GroupMaker groups;
    std::unique_ptr<ProcessGroup> group;  // of all ranks
};

}  // namespace ddrun
