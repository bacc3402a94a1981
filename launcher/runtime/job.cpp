#include "launcher/runtime/job.hpp"

#include "launcher/runtime/refusal.hpp"
#include "rendezvous/platform/random.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/fnv1a.hpp"

#include <csignal>
#include <cstdint>

namespace ddrun::launcher {

Job decide_job(JobSpec spec, MachineFacts facts, const InheritedState& inherited,
               std::vector<std::string>& warnings) {
    const SlotDecision decision = decide_slots(spec, facts);
    if (!decision.problem.empty()) {
        throw Refusal(exit_code::usage, decision.problem);
    }
    warnings.insert(warnings.end(), decision.warnings.begin(), decision.warnings.end());
    Job job{std::move(spec),          std::move(facts), decision.slots, {},
            detail::random_hex_128(), inherited};
    job.job_id = job.spec.job_id.empty() ? job.incarnation : job.spec.job_id;
    return job;
}

namespace {

// Over what is run: enough to tell that two nodes run different things.
std::uint64_t digest_of_command(const JobSpec& spec) {
    std::uint64_t digest = fnv1a(spec.program + '\0');
    for (const std::string& argument : spec.arguments) digest = fnv1a(argument + '\0', digest);
    return digest;
}

}  // namespace

AgentRules agent_rules(const Job& job, int master_port) {
    const JobSpec& spec = job.spec;
    AgentRules rules;
    rules.group.local_world_size = job.slots;
    rules.group.shutdown_timeout = spec.shutdown_timeout;
    rules.group.hang_timeout = spec.hang_timeout;
    rules.group.early_exit_timeout = spec.early_exit_timeout;
    rules.stop_signals = spec.stop_signals;
    if (job.inherited.hangup_ignored) {
        rules.ignored_signals.push_back(SIGHUP);
    }
    rules.node_name = job.facts.node_name;
    rules.join.node_name = job.facts.node_name;
    rules.join.slots = job.slots;
    rules.join.wished_node_rank = spec.node_rank.value_or(-1);
    rules.join.address = master_address(spec);
    rules.join.port = master_port;
    rules.join.topology_group = spec.topology_group.value_or("");
    rules.join.command_digest = digest_of_command(spec);
    return rules;
}

rendezvous::JobRules job_rules(const JobSpec& spec) {
    rendezvous::JobRules rules;
    rules.nodes = spec.max_nodes;
    rules.max_restarts = spec.max_restarts;
    rules.no_restart_on = spec.no_restart_on;
    rules.crash_loop = spec.crash_loop;
    rules.backoff_first = spec.restart_backoff;
    rules.jitter_seed = detail::random_bits();
    return rules;
}

std::string master_address(const JobSpec& spec) {
    std::string address = spec.master_addr.value_or("127.0.0.1");
    const bool bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
    return bracketed ? address.substr(1, address.size() - 2) : address;
}

std::string endpoint_words(const JobSpec& spec) {
    const bool six = spec.rendezvous_host.find(':') != std::string::npos;
    return (six ? "[" + spec.rendezvous_host + "]" : spec.rendezvous_host) + ":" +
           std::to_string(spec.rendezvous_port);
}

}  // namespace ddrun::launcher
