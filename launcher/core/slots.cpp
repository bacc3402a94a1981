#include "launcher/core/numa_plan.hpp"
#include "launcher/core/visible_devices.hpp"
#include "launcher/core/words.hpp"
#include "launcher/core/worker_plan.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

std::string no_gpu_words(const std::optional<VisibleDevices>& devices) {
    return "no visible GPU (" +
           (devices ? devices->origin : std::string("no /dev/nvidia* on this machine")) + ")";
}

// 6 workers on 2 devices: "6 workers, 2 visible GPUs (...): ranks 2-5 have no device".
std::string too_many_words(const JobSpec& spec, int slots, const VisibleDevices& devices) {
    std::vector<int> without;
    for (int i = static_cast<int>(devices.entries.size()); i < slots; ++i) without.push_back(i);
    return counted(static_cast<std::size_t>(slots), "worker") + ", " +
           counted(devices.entries.size(), "visible GPU") + " (" + devices.origin +
           "): " + (spec.max_nodes > 1 ? "local " : "") + rank_list(without) +
           (without.size() == 1 ? " has" : " have") + " no device";
}

int requested_slots(const SlotRequest& request, int gpus, int cpus) {
    switch (request.source) {
        case SlotSource::number:
            return request.number;
        case SlotSource::automatic:
            return gpus > 0 ? gpus : cpus;
        case SlotSource::gpu:
            return gpus;
        case SlotSource::cpu:
            return cpus;
    }
    return 0;
}

}  // namespace

int usable_cpus(const MachineFacts& facts) {
    const int allowed = static_cast<int>(facts.allowed_cpus.size());
    return std::max(1, std::min(allowed, facts.cgroup_cpu_limit.value_or(allowed)));
}

SlotDecision decide_slots(const JobSpec& spec, const MachineFacts& facts) {
    SlotDecision decision;
    const auto devices = visible_devices(spec, facts);
    const int gpus = devices ? static_cast<int>(devices->entries.size()) : 0;
    if (devices) decision.visible_gpus = gpus;
    decision.slots = requested_slots(spec.slots, gpus, usable_cpus(facts));
    if (spec.slots.source == SlotSource::gpu && gpus == 0) {
        decision.problem = "--nproc-per-node=gpu: " + no_gpu_words(devices);
    } else if (decision.slots < 1) {
        decision.problem = "--nproc-per-node=" + std::to_string(decision.slots) +
                           ": at least one worker is needed";
    } else if (spec.require_gpus && gpus == 0) {
        decision.problem = "--require-gpus: " + no_gpu_words(devices);
    } else if (gpus > 0 && decision.slots > gpus) {
        const auto words = too_many_words(spec, decision.slots, *devices);
        if (spec.require_gpus)
            decision.problem = "--require-gpus: " + words;
        else
            decision.warnings.push_back(words);
    }
    if (devices && devices->repeated) {
        decision.warnings.push_back(devices->origin + " names device " + *devices->repeated +
                                    " more than once");
    }
    if (!decision.problem.empty()) return decision;
    const auto binding = binding_problem(spec.numa_binding, facts, decision.slots, devices);
    if (!binding.empty() && spec.strict_binding)
        decision.problem = binding;
    else if (!binding.empty())
        decision.warnings.push_back(binding);
    return decision;
}

}  // namespace ddrun::launcher
