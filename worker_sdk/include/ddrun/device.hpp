#pragma once

#include <string>

namespace ddrun {

enum class DeviceKind { cpu, cuda };

// The device this rank computes on. A plain value; holds no resource.
struct Device {
    DeviceKind kind = DeviceKind::cpu;
    // cuda: the ordinal to pass to cudaSetDevice: the local rank, or 0 where CUDA_VISIBLE_DEVICES
    // shows a single device because the launcher bound one to each worker. cpu: always 0.
    int index = 0;
    // "cuda:1 (2 visible)" or "cpu (no CUDA driver)": what was chosen, and why.
    std::string words;
};

}  // namespace ddrun
