// Who am I, and who else is here?
#include <ddrun/worker.hpp>

#include <cstdio>
#include <string>

namespace {

void say_hello(ddrun::Worker& worker) {
    std::printf("hello from rank %d of %d on %s\n", worker.rank(), worker.world_size(),
                worker.device().kind == ddrun::DeviceKind::cuda ? "CUDA" : "CPU");
    std::fflush(stdout);

    // One small value of every rank, known to all.
    const auto names = worker.store().all_gather("names", "r" + std::to_string(worker.rank()));
    std::string everybody;
    for (const auto& name : names) everybody += ' ' + name;
    worker.log().info("all here:", everybody);  // rank 0 only
}

}  // namespace

int main() {
    try {
        auto worker = ddrun::Worker::from_environment();
        say_hello(worker);
        return 0;
    } catch (const ddrun::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_code();
    }
}
