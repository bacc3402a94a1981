#include "launcher/runtime/cpu_topology.hpp"

#include "launcher/runtime/small_file.hpp"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace ddrun::launcher {
namespace {

const std::string cpu_root = "/sys/devices/system/cpu";
const std::string node_root = "/sys/devices/system/node";

std::vector<std::string> entries_of(const std::string& directory) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
    while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
        if (entry->d_name[0] != '.') {
            names.emplace_back(entry->d_name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string cpu_file(int cpu, const std::string& name) {
    return read_small_file(cpu_root + "/cpu" + std::to_string(cpu) + "/" + name);
}

int socket_of(int cpu) {
    return static_cast<int>(
        leading_number(cpu_file(cpu, "topology/physical_package_id")).value_or(0));
}

void add_numa_nodes(MachineFacts& facts, const std::vector<int>& online) {
    for (const int id : parse_cpu_list(read_small_file(node_root + "/online"))) {
        NumaNode node;
        node.id = id;
        node.cpus =
            parse_cpu_list(read_small_file(node_root + "/node" + std::to_string(id) + "/cpulist"));
        if (!node.cpus.empty()) {  // a node of memory alone binds nobody
            node.socket = socket_of(node.cpus.front());
            facts.numa_nodes.push_back(std::move(node));
        }
    }
    if (facts.numa_nodes.empty()) {  // a kernel without NUMA: one node with everything
        facts.numa_nodes.push_back({0, 0, online});
    }
}

// The distinct groups that `file` of each CPU names.
std::vector<std::vector<int>> groups(const std::vector<int>& online, const std::string& file) {
    std::set<std::vector<int>> distinct;
    for (const int cpu : online) {
        std::vector<int> group = parse_cpu_list(cpu_file(cpu, file));
        distinct.insert(group.empty() ? std::vector<int>{cpu} : std::move(group));
    }
    return {distinct.begin(), distinct.end()};
}

// The driver lists GPUs by PCI address; sorted, that is the order of CUDA_DEVICE_ORDER=PCI_BUS_ID.
void add_gpu_nodes(MachineFacts& facts) {
    for (const std::string& address : entries_of("/proc/driver/nvidia/gpus")) {
        const auto node =
            leading_number(read_small_file("/sys/bus/pci/devices/" + address + "/numa_node"));
        facts.gpu_numa_nodes.push_back(static_cast<int>(node.value_or(-1)));
    }
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cpus;
    const char* at = text.c_str();
    while (*at >= '0' && *at <= '9') {
        char* end = nullptr;
        const long first = std::strtol(at, &end, 10);
        const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && cpus.size() < 65536; ++cpu) {
            cpus.push_back(static_cast<int>(cpu));
        }
        at = *end == ',' ? end + 1 : end;
    }
    return cpus;
}

void read_cpu_topology(MachineFacts& facts) {
    const std::vector<int> online = parse_cpu_list(read_small_file(cpu_root + "/online"));
    add_numa_nodes(facts, online);
    facts.cores = groups(online, "topology/thread_siblings_list");
    facts.l3_groups = groups(online, "cache/index3/shared_cpu_list");
    add_gpu_nodes(facts);
}

}  // namespace ddrun::launcher
