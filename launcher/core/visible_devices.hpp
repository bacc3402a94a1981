#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/core/worker_plan.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// The GPUs that the workers may see, in their order.
struct VisibleDevices {
    // As written (an index, "GPU-...", "MIG-..."), without spaces around them; the list ends before
    // the first entry that names no device, as the driver ends it.
    std::vector<std::string> entries;
    bool listed = false;  // by --gpus or CUDA_VISIBLE_DEVICES; otherwise all of this machine
    std::string origin;   // "CUDA_VISIBLE_DEVICES=4,5", "--gpus=4,5", "/dev/nvidia*"
    std::optional<std::string> repeated;  // an entry that is listed twice
};

// nullopt: this machine has no GPU and nothing names one.
[[nodiscard]] std::optional<VisibleDevices> visible_devices(const JobSpec& spec,
                                                            const MachineFacts& facts);

// The device's own number where the entry is one; nullopt for the others.
[[nodiscard]] std::optional<int> device_index(const std::string& entry);

}  // namespace ddrun::launcher
