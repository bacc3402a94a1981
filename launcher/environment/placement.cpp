#include "launcher/environment/placement.hpp"

#include "launcher/environment/kubernetes.hpp"
#include "launcher/environment/slurm.hpp"

#include <cstdint>
#include <sstream>

namespace ddrun::launcher {
namespace {

// Below the range from which kernels take ports for connections (32768), above what services use.
constexpr int first_port = 20'000;
constexpr int port_count = 12'000;

// The same on all nodes of one run, another for the next: FNV-1a.
int port_of(const std::string& run_id) {
    std::uint32_t hash = 0x811c9dc5;
    for (const char byte : run_id) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
    return first_port + static_cast<int>(hash % port_count);
}

Placement placement_of(const SlurmFacts& facts) {
    Placement placement;
    placement.scheduler = "Slurm";
    placement.copies_here = facts.tasks_here;
    placement.values.push_back({"rdzv-id", facts.run_id(), "SLURM_JOB_ID"});
    if (!facts.in_step) {
        if (facts.job_nodes > 1) {
            placement.advice = "this Slurm job has " + std::to_string(facts.job_nodes) +
                               " nodes, of which ddrun without srun uses one; start it as "
                               "'srun --ntasks-per-node=1 ddrun ...' to use all";
        }
        return placement;
    }
    placement.nodes = facts.node_count;
    if (facts.node_count == 1) return placement;
    placement.values.push_back(
        {"nnodes", std::to_string(facts.node_count), "SLURM_STEP_NUM_NODES"});
    placement.values.push_back({"node-rank", std::to_string(facts.node_id), "SLURM_NODEID"});
    if (!facts.hosts.empty()) {
        placement.values.push_back(
            {"rdzv-endpoint", facts.hosts.front() + ":" + std::to_string(port_of(facts.run_id())),
             "SLURM_STEP_NODELIST"});
    }
    return placement;
}

Placement placement_of(const PodFacts& facts) {
    Placement placement;
    placement.scheduler = "Kubernetes";
    if (facts.node_count) {
        placement.nodes = *facts.node_count;
        placement.values.push_back({"nnodes", std::to_string(*facts.node_count), "WORLD_SIZE"});
    }
    placement.values.push_back({"node-rank", std::to_string(facts.index), facts.index_variable});
    if (!facts.first_host.empty()) {
        placement.values.push_back({"rdzv-endpoint", facts.first_host, facts.first_host_variable});
    }
    return placement;
}

Placement unreadable(const char* scheduler, const std::string& problem) {
    Placement placement;
    placement.scheduler = scheduler;
    placement.unreadable = problem;
    return placement;
}

}  // namespace

// Slurm first: its jobs may run in pods, and then it is Slurm that placed them.
Placement read_placement(const Lookup& lookup, const std::string& own_name) {
    const SlurmReading slurm = read_slurm(lookup);
    if (slurm.facts) return placement_of(*slurm.facts);
    if (!slurm.problem.empty()) return unreadable("Slurm", slurm.problem);
    const PodReading pod = read_pod(lookup, own_name);
    if (pod.facts) return placement_of(*pod.facts);
    if (!pod.problem.empty()) return unreadable("Kubernetes", pod.problem);
    return {};
}

std::string full_name_in_hosts_file(const std::string& text, const std::string& host_name) {
    if (host_name.empty()) return {};
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word;
        words >> word;  // the address
        while (words >> word) {
            if (word.starts_with(host_name + ".")) return word;
        }
    }
    return {};
}

}  // namespace ddrun::launcher
