#include "launcher/environment/scheduler.hpp"

namespace ddrun::launcher {

std::optional<Scheduler> find_scheduler(const Lookup& lookup) {
    // Slurm first: its jobs may run in pods, and then Slurm's limits come first.
    constexpr Scheduler known[] = {{"Slurm", "SLURM_JOB_ID"},
                                   {"Kubernetes", "KUBERNETES_SERVICE_HOST"}};
    for (const Scheduler& scheduler : known) {
        if (lookup(scheduler.variable)) return scheduler;
    }
    return std::nullopt;
}

}  // namespace ddrun::launcher
