#pragma once

#include "rendezvous/core/job_service.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace ddrun::rendezvous {

// What a server can tell about itself.
struct ServerStatus {
    std::string build;
    Duration uptime{};
    std::size_t connections = 0;  // that have proved who they are
    std::size_t strangers = 0;    // that have not, yet
    std::size_t turned_away = 0;  // since the start
    std::vector<JobStatus> jobs;
};

}  // namespace ddrun::rendezvous
