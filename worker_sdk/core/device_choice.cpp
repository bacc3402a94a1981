#include "worker_sdk/core/device_choice.hpp"

namespace ddrun::detail {
namespace {

Device cuda(int index, int count) {
    return {DeviceKind::cuda, index,
            "cuda:" + std::to_string(index) + " (" + std::to_string(count) + " visible)"};
}

Device cpu(const std::string& reason) {
    return {DeviceKind::cpu, 0, reason + ": using CPU"};
}

}  // namespace

Device choose_device(const DriverFacts& facts, int local_rank, int local_world_size) {
    if (!facts.problem.empty()) return cpu(facts.problem);
    if (facts.device_count < 1) return cpu("no CUDA device");
    if (facts.device_count >= local_world_size) return cuda(local_rank, facts.device_count);
    if (facts.device_count == 1 && facts.visible) return cuda(0, 1);
    return cpu(std::to_string(facts.device_count) + " CUDA devices for " +
               std::to_string(local_world_size) + " workers on this node");
}

}  // namespace ddrun::detail
