#pragma once

#include "rendezvous/protocol/worker_env.hpp"
#include "worker_sdk/src/control/control_link.hpp"
#include "worker_sdk/src/cpu/group_hooks.hpp"
#include "worker_sdk/src/cpu/mesh.hpp"
#include "worker_sdk/src/cpu/shared_group.hpp"
#include "worker_sdk/src/end_watch.hpp"
#include "worker_sdk/src/fork_guard.hpp"
#include "worker_sdk/src/stop_state.hpp"

#include <ddrun/worker.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ddrun::detail {

// Makes the groups of one worker: by itself, in the shared memory of its node, or over several
// nodes. One thread at a time.
class GroupMaker {
  public:
    // What a group needs of its worker; all of it outlives the maker.
    struct Surroundings {
        const WorkerEnv& env;
        const WorkerOptions& options;
        const ForkGuard& guard;
        StopState& stop;
        EndWatch& end_watch;
        const std::unique_ptr<ControlLink>& link;
        const std::unique_ptr<Store>& store;
    };
    explicit GroupMaker(const Surroundings& worker) : worker_(worker) {}

    [[nodiscard]] std::unique_ptr<ProcessGroup> make_world();
    [[nodiscard]] std::unique_ptr<ProcessGroup> make(std::vector<int> ranks);

  private:
    struct Members {
        std::string name;
        std::vector<int> ranks;  // of the world, rising
        int self = 0;            // this rank's place among them
        std::vector<int> nodes;  // how many on each node
        std::vector<int> local;  // those of this node
        int local_self = 0;
    };
    [[nodiscard]] std::unique_ptr<ProcessGroup> make_named(std::string name,
                                                           std::vector<int> ranks);
    [[nodiscard]] Members members(std::string name, std::vector<int> ranks);
    [[nodiscard]] std::vector<int> nodes_of(const std::vector<int>& ranks);
    [[nodiscard]] std::unique_ptr<SharedGroup> make_shared(const Members& members,
                                                           GroupHooks hooks);
    [[nodiscard]] std::unique_ptr<ProcessGroup> make_on_node(const Members& members);
    [[nodiscard]] std::unique_ptr<ProcessGroup> make_joined(const Members& members);
    using EndToken = std::shared_ptr<int>;
    [[nodiscard]] EndToken stop_hearing_when_destroyed(GroupHooks& hooks);
    template <typename Group>
    void let_hear(Group& group, const EndToken& token);
    [[nodiscard]] std::unique_ptr<Arena> open_arena(const Members& members);
    [[nodiscard]] GroupHooks hooks(const Members& members) const;

    Surroundings worker_;
    std::unique_ptr<Mesh> mesh_;        // once a group is on several nodes
    std::map<std::string, int> calls_;  // groups made before, by their ranks
};

}  // namespace ddrun::detail
