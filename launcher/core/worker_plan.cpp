#include "launcher/core/worker_plan.hpp"

#include "launcher/core/numa_plan.hpp"
#include "launcher/core/visible_devices.hpp"

#include <algorithm>
#include <string_view>

namespace ddrun::launcher {
namespace {

// A worker must not believe what some outer launcher, or an earlier run of this one, once said, and
// must never see the job's secret.
bool is_stale(std::string_view name) {
    return is_worker_variable(name) || name.starts_with("TORCHELASTIC_") ||
           name.starts_with("DDRUN_SECRET");
}

// Python, and what it needs to run the program; empty: the program is executed itself.
std::vector<std::string> interpreter_of(const JobSpec& spec, const MachineFacts& facts) {
    switch (decided_kind(spec)) {
        case ProgramKind::automatic:
        case ProgramKind::execute:
            return {};
        case ProgramKind::module:
            return {facts.python, "-u", "-m"};
        case ProgramKind::script:
            return {facts.python, "-u"};
    }
    return {};
}

std::vector<std::string> prefix_of(const JobSpec& spec, int rank) {
    const auto& commands = spec.prefix_commands;
    const auto last =
        std::find_if(commands.rbegin(), commands.rend(),
                     [&](const PrefixCommand& command) { return command.ranks.contains(rank); });
    return last == commands.rend() ? std::vector<std::string>{} : last->words;
}

int told_local_rank(const JobSpec& spec, int local_rank) {
    return spec.virtual_local_rank ? 0 : local_rank;
}

std::vector<std::string> argv_of(const JobSpec& spec, const MachineFacts& facts, int rank,
                                 int local_rank) {
    auto argv = prefix_of(spec, rank);
    const auto interpreter = interpreter_of(spec, facts);
    argv.insert(argv.end(), interpreter.begin(), interpreter.end());
    argv.push_back(spec.program);
    if (spec.local_rank_flag)
        argv.push_back(*spec.local_rank_flag + "=" +
                       std::to_string(told_local_rank(spec, local_rank)));
    argv.insert(argv.end(), spec.arguments.begin(), spec.arguments.end());
    return argv;
}

WorkerEnv identity_of(const JobSpec& spec, const MachineFacts& facts,
                      const rendezvous::RoundGranted& grant, const RoundFacts& round,
                      int local_rank) {
    WorkerEnv env;
    env.rank = env.role_rank = grant.first_rank + local_rank;
    env.world_size = env.role_world_size = grant.world_size;
    env.local_rank = told_local_rank(spec, local_rank);
    env.local_world_size = round.local_world_size;
    env.node_rank = grant.node_rank;
    env.node_count = grant.node_count;
    env.role = spec.role;
    env.master_addr = grant.master_addr;
    env.master_port = grant.master_port;
    env.restart_count = grant.restart_count;
    env.max_restarts = spec.max_restarts;
    env.round = grant.round;
    env.job_id = round.job_id;
    env.incarnation = round.incarnation;
    env.node_name = facts.node_name;
    env.agent_socket = round.agent_socket;
    env.log_dir = round.log_dir;
    if (!round.log_dir.empty()) {
        env.error_file = round.log_dir + "/" + std::to_string(env.rank) + "/error.json";
    }
    env.console_is_terminal = round.console_is_terminal;
    env.agent_store = serves_agent_store(spec);
    return env;
}

// What all workers of the node share: ddrun's own environment without stale news, and our defaults
// where the user chose nothing. An empty value is a choice.
Variables common_environment(const JobSpec& spec, const MachineFacts& facts, int workers) {
    Variables variables;
    for (const auto& [name, value] : facts.environment) {
        if (!is_stale(name)) variables.emplace_hint(variables.end(), name, value);
    }
    variables.emplace("PYTHONUNBUFFERED", "1");
    variables.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (workers > 1) {
        variables.emplace("OMP_NUM_THREADS",
                          std::to_string(std::max(1, usable_cpus(facts) / workers)));
    }
    if (spec.gpus) variables["CUDA_VISIBLE_DEVICES"] = *spec.gpus;
    return variables;
}

std::string device_of(const VisibleDevices& devices, int local_rank) {
    const auto at = static_cast<std::size_t>(local_rank);
    return at < devices.entries.size() ? devices.entries[at] : std::string();
}

}  // namespace

std::vector<WorkerPlan> plan_workers(const JobSpec& spec, const MachineFacts& facts,
                                     const rendezvous::RoundGranted& grant,
                                     const RoundFacts& round) {
    const auto devices = visible_devices(spec, facts);
    const auto placements =
        place_workers(spec.numa_binding, facts, round.local_world_size, devices);
    const bool own_device_only =
        spec.virtual_local_rank || spec.gpu_binding == GpuBinding::per_rank;
    const auto common = common_environment(spec, facts, round.local_world_size);
    std::vector<WorkerPlan> plans;
    plans.reserve(placements.size());
    for (int local_rank = 0; local_rank < round.local_world_size; ++local_rank) {
        WorkerPlan plan;
        plan.rank = grant.first_rank + local_rank;
        plan.local_rank = local_rank;
        plan.argv = argv_of(spec, facts, plan.rank, local_rank);
        plan.environment = to_variables(identity_of(spec, facts, grant, round, local_rank));
        plan.environment.insert(common.begin(), common.end());
        if (own_device_only && devices) {
            plan.environment["CUDA_VISIBLE_DEVICES"] = device_of(*devices, local_rank);
        }
        for (const auto& [name, value] : spec.extra_env) plan.environment[name] = value;
        plan.cpus = placements[static_cast<std::size_t>(local_rank)].cpus;
        plan.memory_node = placements[static_cast<std::size_t>(local_rank)].memory_node;
        plan.owns_stdin = spec.stdin_rank == plan.rank;
        plans.push_back(std::move(plan));
    }
    return plans;
}

}  // namespace ddrun::launcher
