#pragma once

#include "launcher/core/job_spec.hpp"

#include <optional>
#include <string>

namespace ddrun::launcher {

// What all sources said, before it is put together: the specification, and what is said about the
// configuration itself or in torchrun's words.
struct Draft : JobSpec {
    // Together they are JobSpec::kind.
    bool module = false;
    bool no_python = false;
    bool run_path = false;

    // torchrun's words for the rendezvous.
    bool standalone = false;
    std::string rdzv_backend = "ddrun";
    std::optional<std::string> rdzv_conf;

    // Accepted for torchrun's sake; ddrun has nothing that they could change.
    Duration monitor_interval = std::chrono::milliseconds(100);
    std::string start_method = "spawn";
    std::string event_log_handler = "null";

    // About this call, not about the job.
    std::optional<std::string> config_file;
    bool print_config = false;
    bool dry_run = false;

    bool operator==(const Draft&) const = default;
};

}  // namespace ddrun::launcher
