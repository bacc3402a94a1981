#include "launcher/runtime/dry_run.hpp"

#include "launcher/config/plan_text.hpp"
#include "launcher/core/worker_plan.hpp"

#include <vector>

namespace ddrun::launcher {
namespace {

std::string count_of_nodes(const JobSpec& spec) {
    const std::string most = std::to_string(spec.max_nodes);
    return spec.min_nodes == spec.max_nodes ? most : std::to_string(spec.min_nodes) + " to " + most;
}

std::string rank_of(int local_rank) {
    return local_rank == 0 ? "<N>" : "<N+" + std::to_string(local_rank) + ">";
}

// Which of these belong to this node nobody knows yet.
JobSpec without_global_ranks(JobSpec spec) {
    spec.stdin_rank.reset();
    std::erase_if(spec.prefix_commands,
                  [](const PrefixCommand& command) { return !command.ranks.ranges.empty(); });
    return spec;
}

void leave_open(const Job& job, WorkerPlan& worker) {
    const JobSpec& spec = job.spec;
    Variables& environment = worker.environment;
    const std::string place =
        spec.node_rank ? std::to_string(*spec.node_rank) : "<place of this node>";
    const std::string nodes = spec.min_nodes == spec.max_nodes ? std::to_string(spec.max_nodes)
                                                               : "<" + count_of_nodes(spec) + ">";
    environment["RANK"] = environment["ROLE_RANK"] = rank_of(worker.local_rank);
    environment["WORLD_SIZE"] = environment["ROLE_WORLD_SIZE"] = "<workers of all nodes>";
    environment["GROUP_RANK"] = environment["DDRUN_NODE_RANK"] = place;
    environment["GROUP_WORLD_SIZE"] = nodes;
    environment["MASTER_ADDR"] = "<address of the first node>";
    environment["DDRUN_WORKER_TAG"] = job.incarnation + ".1." + rank_of(worker.local_rank);
}

std::string about_the_nodes(const JobSpec& spec) {
    std::string text = "N: this node's first rank, known when " + count_of_nodes(spec) +
                       " nodes have met at " + endpoint_words(spec) + "\n";
    if (!(without_global_ranks(spec) == spec)) {
        text += "what --stdin and --prefix-command give to certain ranks is not shown\n";
    }
    return text;
}

}  // namespace

std::string dry_run_text(const Job& job) {
    const bool several = has_several_nodes(job.spec);
    rendezvous::RoundGranted grant;
    grant.world_size = job.slots;
    grant.master_addr = master_address(job.spec);
    grant.master_port = job.spec.master_port.value_or(0);
    const RoundFacts round{job.job_id, job.incarnation, "@ddrun", "", false, job.slots};
    std::vector<WorkerPlan> plan =
        plan_workers(several ? without_global_ranks(job.spec) : job.spec, job.facts, grant, round);
    for (WorkerPlan& worker : plan) {
        if (several) leave_open(job, worker);
        if (!job.spec.master_port) worker.environment["MASTER_PORT"] = "<a free port>";
    }
    return (several ? about_the_nodes(job.spec) : "") + plan_text(plan, job.facts.environment);
}

}  // namespace ddrun::launcher
