#include <ddrun/worker.hpp>

#include <cstdio>
#include <vector>

int main() {
    auto worker = ddrun::Worker::from_environment();
    std::vector<float> ones(10, 1.0f);
    worker.process_group().all_reduce(ones);
    if (worker.rank() == 0) std::printf("%g of %d\n", ones[0], worker.world_size());
    return 0;
}
