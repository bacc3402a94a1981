#pragma once

#include "launcher/core/worker_group.hpp"

#include <string>
#include <vector>

// Why a round ended, put into the words and numbers of a Cause. The Agent adds the node.
namespace ddrun::launcher {

// Signals with which a scheduler or a terminal stops everybody: HUP, INT and TERM.
[[nodiscard]] bool is_foreign_stop(const ExitStatus& status);

[[nodiscard]] rendezvous::WorkerFailure failure_of(const WorkerRecord& worker, TimePoint now);
[[nodiscard]] rendezvous::Cause cause_of_failure(const WorkerRecord& worker, TimePoint now);
// `wanted` workers were to be started, this one was refused.
[[nodiscard]] rendezvous::Cause cause_of_refusal(const WorkerRecord& worker,
                                                 const WorkerNotStarted& event, int wanted);
// `accused` lives but does not answer; `worker` gave up because of it.
[[nodiscard]] rendezvous::Cause cause_of_silent_peer(const WorkerRecord& accused,
                                                     const WorkerRecord& worker, TimePoint now);
[[nodiscard]] rendezvous::Cause cause_of_early_exit(const WorkerRecord& worker,
                                                    const std::string& words);
// `evidence`: what the suspects were doing, a line each.
[[nodiscard]] rendezvous::Cause cause_of_hang(const WorkerRecord& worker, const std::string& words,
                                              const std::vector<std::string>& evidence);
[[nodiscard]] std::string stuck_words(const ProcessStuck& event, int first_rank, Duration patience);

}  // namespace ddrun::launcher
