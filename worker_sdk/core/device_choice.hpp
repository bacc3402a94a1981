#pragma once

#include <ddrun/device.hpp>

#include <optional>
#include <string>

namespace ddrun::detail {

// What the machine answered.
struct DriverFacts {
    std::string problem;                 // why there is no usable driver; empty: there is one
    int device_count = 0;                // devices it shows
    std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES as set
};

// The device of a rank. A launcher that binds one device to each worker shows each a single device,
// which then is index 0; where all devices are shown, the local rank picks. Too few for all local
// workers: the CPU, so that no two ranks share a device unawares.
[[nodiscard]] Device choose_device(const DriverFacts& facts, int local_rank, int local_world_size);

}  // namespace ddrun::detail
