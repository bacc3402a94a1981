// A user's file: nothing of ours on the path but the public headers.
#include <ddrun/worker.hpp>

int world_size_of(const ddrun::Worker& worker) {
    return worker.world_size();
}
