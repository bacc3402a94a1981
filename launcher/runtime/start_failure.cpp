#include "launcher/runtime/start_failure.hpp"

#include "launcher/runtime/cgroup.hpp"
#include "launcher/runtime/program_lookup.hpp"
#include "launcher/runtime/refusal.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace ddrun::launcher {
namespace {

std::string limit_words(const char* name, __rlimit_resource resource) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    return std::string(name) + "=" +
           (limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur));
}

// "EAGAIN (Resource temporarily unavailable; RLIMIT_NPROC=50, pids.max=64)": with the limits that
// the error usually means.
std::string refusal_words(int error_number) {
    const char* name = ::strerrorname_np(error_number);
    std::string words =
        std::string(name != nullptr ? name : "error") + " (" + error_text(error_number);
    if (error_number == EMFILE) {
        words += "; " + limit_words("RLIMIT_NOFILE", RLIMIT_NOFILE);
    } else if (error_number == EAGAIN) {
        const std::string pids = cgroup_pids_limit();
        words +=
            "; " + limit_words("RLIMIT_NPROC", RLIMIT_NPROC) + (pids.empty() ? "" : ", " + pids);
    }
    return words + ")";
}

}  // namespace

WorkerNotStarted describe_start_failure(const WorkerPlan& worker, const std::string& stage,
                                        int error_number) {
    const bool exec = stage == "exec";
    WorkerNotStarted failure;
    failure.local_rank = worker.local_rank;
    failure.exit_code = exec ? exec_failure_code(error_number) : exit_code::system_refused;
    failure.words = exec ? exec_failure_words(worker.argv.front(), worker.environment, error_number)
                         : stage + ": " + refusal_words(error_number);
    return failure;
}

}  // namespace ddrun::launcher
