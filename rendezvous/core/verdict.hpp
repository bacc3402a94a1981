#pragma once

#include "rendezvous/protocol/job_messages.hpp"

// What a cause means for the job: the exit code table of ddrun, for causes.
namespace ddrun::rendezvous {

// The code with which every node ends when `cause` ends the job. Never 0.
[[nodiscard]] int exit_code_of(const Cause& cause);

// Could another attempt go better, or one without the node that failed? Not where the program
// cannot be started, the system refused, a worker said "never retry", or somebody asked ddrun to
// stop.
[[nodiscard]] bool worth_retrying(const Cause& cause);

}  // namespace ddrun::rendezvous
