#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun {

// Everything a worker learns from its environment: who it is in this round, and how to reach its
// agent. Written by the launcher, read by the SDK; both through this one table of names.
struct WorkerEnv {
    int rank = 0;
    int world_size = 1;
    int local_rank = 0;
    int local_world_size = 1;
    int node_rank = 0;   // GROUP_RANK
    int node_count = 1;  // GROUP_WORLD_SIZE
    std::string role = "default";
    int role_rank = 0;
    int role_world_size = 1;
    std::string master_addr = "127.0.0.1";
    int master_port = 0;
    int restart_count = 0;  // round - 1, the same on every rank
    int max_restarts = 0;
    int round = 1;
    std::string job_id = "none";
    std::string incarnation;  // of the job; hexadecimal
    std::string node_name;
    std::string agent_socket;  // "@name" is abstract; empty: no agent, a world of one
    std::string error_file;    // TORCHELASTIC_ERROR_FILE; empty: none
    std::string log_dir;       // DDRUN_LOG_DIR: this node's directory of the round; empty: none
    bool agent_store = false;  // TORCHELASTIC_USE_AGENT_STORE: PyTorch's store is the agent's
    bool console_is_terminal = false;  // DDRUN_CONSOLE=tty|pipe: what ddrun's own stdout is

    // Marks a worker and whatever it starts: "<incarnation>.<round>.<rank>".
    [[nodiscard]] std::string tag() const;

    auto operator<=>(const WorkerEnv&) const = default;
};

namespace variable {
constexpr std::string_view agent_socket = "DDRUN_AGENT_SOCKET";
constexpr std::string_view worker_tag = "DDRUN_WORKER_TAG";
}  // namespace variable

using Variables = std::map<std::string, std::string>;
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

[[nodiscard]] Variables to_variables(const WorkerEnv& env);

// Whether to_variables() may set `name`: it says who a worker is, and means nothing to any other.
[[nodiscard]] bool is_worker_variable(std::string_view name);

// `env`, or in `problem` one sentence naming the variable, its value and what would be right.
// All of RANK, WORLD_SIZE ... absent gives a world of one. Contradictions (RANK >= WORLD_SIZE, a
// non-number, RANK without WORLD_SIZE) are problems.
struct WorkerEnvResult {
    WorkerEnv env;
    std::string problem;  // empty: fine
};
[[nodiscard]] WorkerEnvResult worker_env_from(const Lookup& lookup);

}  // namespace ddrun
