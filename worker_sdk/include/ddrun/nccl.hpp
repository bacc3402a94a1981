#pragma once

namespace ddrun {

// The 128 bytes of an ncclUniqueId. Worker::nccl_unique_ids() makes them.
struct NcclUniqueId {
    char bytes[128];
};

}  // namespace ddrun
