#include "launcher/runtime/start_failure.hpp"

#include "launcher/runtime/cgroup.hpp"
#include "launcher/runtime/program_lookup.hpp"
#include "launcher/runtime/refusal.hpp"

#include <sys/resource.h>

#include <cerrno>

namespace ddrun::launcher {
namespace {

std::string limit_words(const char* name, __rlimit_resource resource) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    return std::string(name) + "=" +
           (limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur));
}

// The limits that this error usually means; empty where there is no such limit.
std::string likely_limits(int error_number) {
    if (error_number == EMFILE) {
        return " (" + limit_words("RLIMIT_NOFILE", RLIMIT_NOFILE) + ")";
    }
    if (error_number == EAGAIN) {
        const std::string pids = cgroup_pids_limit();
        return " (" + limit_words("RLIMIT_NPROC", RLIMIT_NPROC) +
               (pids.empty() ? "" : ", " + pids) + ")";
    }
    return {};
}

}  // namespace

WorkerNotStarted describe_start_failure(int local_rank, const std::string& stage, int error_number,
                                        const StartAttempt& attempt) {
    WorkerNotStarted failure;
    failure.local_rank = local_rank;
    failure.error_number = error_number;
    failure.stage = stage;
    failure.exit_code =
        stage == "exec" ? exec_failure_code(error_number) : exit_code::system_refused;
    failure.words = stage == "exec" ? exec_failure_words(attempt.program, error_number)
                                    : "started " + std::to_string(attempt.started) + " of " +
                                          std::to_string(attempt.wanted) + ": " + stage + ": " +
                                          error_text(error_number) + likely_limits(error_number);
    return failure;
}

}  // namespace ddrun::launcher
