#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/runtime/job.hpp"
#include "rendezvous/transport/security.hpp"

#include <boost/asio/ip/address.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// What a job of several nodes needs besides the specification, decided before the first worker.
struct RemoteJob {
    rendezvous::Security security;
    std::optional<boost::asio::ip::address> local_address;  // nothing: what reaches the endpoint
    std::string obituary_token;                             // 128 random bits in hex
};

// Finds the job's secret and this node's address; warnings are appended. Nothing for a job of one
// node. Throws Refusal(2).
[[nodiscard]] std::optional<RemoteJob> decide_remote_job(const JobSpec& spec,
                                                         const Variables& environment,
                                                         std::vector<std::string>& warnings);

// --make-secret: makes the user's secret and tells where it is.
[[nodiscard]] std::string make_user_secret(const Variables& environment);

}  // namespace ddrun::launcher
