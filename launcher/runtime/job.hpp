#pragma once

#include "launcher/core/agent.hpp"
#include "launcher/core/job_spec.hpp"
#include "launcher/core/worker_plan.hpp"
#include "launcher/runtime/process_setup.hpp"
#include "rendezvous/core/coordinator.hpp"

#include <string>

namespace ddrun::launcher {

// Everything decided before the first worker starts. Lives as long as the process.
struct Job {
    JobSpec spec;
    MachineFacts facts;
    int slots = 1;            // workers on this node
    std::string job_id;       // the user's, or the incarnation where there is none
    std::string incarnation;  // 128 random bits in hex
    InheritedState inherited;
};

// Decides the number of workers and checks what depends on it; warnings are appended. Throws
// Refusal.
[[nodiscard]] Job decide_job(JobSpec spec, MachineFacts facts, const InheritedState& inherited,
                             std::vector<std::string>& warnings);

[[nodiscard]] AgentRules agent_rules(const Job& job, int master_port);
[[nodiscard]] rendezvous::JobRules job_rules(const JobSpec& spec);
// MASTER_ADDR of a job that has one node.
[[nodiscard]] std::string master_address(const JobSpec& spec);
// Where the nodes of a job meet, as host:port.
[[nodiscard]] std::string endpoint_words(const JobSpec& spec);

}  // namespace ddrun::launcher
