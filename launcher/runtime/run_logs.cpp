#include "launcher/runtime/run_logs.hpp"

#include "launcher/runtime/line_prefix.hpp"
#include "launcher/runtime/refusal.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ddrun::launcher {
namespace {

bool contains(Streams set, Streams stream) {
    return (static_cast<int>(set) & static_cast<int>(stream)) != 0;
}

bool names_any(const StreamMap& map) {
    bool any = map.otherwise != Streams::none;
    for (const auto& [range, streams] : map.ranges) {
        any = any || streams != Streams::none;
    }
    return any;
}

// A job id is the user's text; in a path it must stay one component.
std::string as_component(std::string text) {
    for (char& byte : text) {
        byte = byte == '/' ? '_' : byte;
    }
    return text.empty() || text == "." || text == ".." ? "job" + text : text;
}

// Like mkdir -p; 0, or the error number and in `path` what was refused.
int make_directories(std::string& path) {
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
        const std::string part = path.substr(0, slash);
        if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
            // A read-only parent that exists already answers EROFS instead of EEXIST.
            const int error_number = errno;
            struct stat facts {};
            if (::stat(part.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
                path = part;
                return error_number;
            }
        }
        if (slash == std::string::npos) {
            struct stat facts {};
            return ::stat(path.c_str(), &facts) != 0 ? errno : S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
        }
    }
}

std::string make_temporary_directory(const std::string& job_id, std::string& warning) {
    const char* base = ::getenv("TMPDIR");
    std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/ddrun_" +
                       as_component(job_id) + "_XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
        warning = "cannot make " + path + ": " + error_text(errno) +
                  "; output goes to the console only (choose a place with --log-dir)";
        return {};
    }
    return path;
}

}  // namespace

RunLogs::RunLogs(const JobSpec& spec, const std::string& node_name, const std::string& job_id,
                 const std::string& incarnation)
    : spec_(spec), node_name_(as_component(node_name)) {
    const std::string run = "/" + as_component(job_id) + "_" + incarnation.substr(0, 8);
    if (spec.log_dir) {
        if (*spec.log_dir == "/dev/null") {  // torchrun's way to say "no files at all"
            return;
        }
        std::string path = *spec.log_dir + run;
        if (const int error_number = make_directories(path); error_number != 0) {
            throw Refusal(exit_code::usage, "--log-dir " + *spec.log_dir + " cannot be used: " +
                                                path + ": " + error_text(error_number));
        }
        run_directory_ = *spec.log_dir + run;
    } else if (names_any(spec.redirects) || names_any(spec.tee)) {
        const std::string temporary = make_temporary_directory(job_id, warning_);
        run_directory_ = temporary.empty() ? temporary : temporary + run;
    }
}

std::string RunLogs::begin_attempt(int restart_count, int first_rank, int workers) {
    attempt_directory_.clear();
    if (run_directory_.empty()) {
        return {};
    }
    const std::string attempt =
        run_directory_ + "/attempt_" + std::to_string(restart_count) + "/" + node_name_;
    for (int rank = first_rank; rank < first_rank + workers; ++rank) {
        std::string path = attempt + "/" + std::to_string(rank);
        if (const int error_number = make_directories(path); error_number != 0) {
            warning_ = "cannot make " + path + ": " + error_text(error_number) +
                       "; this attempt has the console only";
            return {};
        }
    }
    attempt_directory_ = attempt;
    return attempt;
}

// --log-dir alone keeps everything: who names a directory wants files in it.
bool RunLogs::keeps_file(int local_rank, Streams stream) const {
    if (attempt_directory_.empty()) {
        return false;
    }
    const bool asked_for_some = names_any(spec_.redirects) || names_any(spec_.tee);
    return !asked_for_some || contains(spec_.redirects.for_rank(local_rank), stream) ||
           contains(spec_.tee.for_rank(local_rank), stream);
}

// What has no file is never taken from the console by --redirects: it would be lost.
bool RunLogs::shows(const WorkerPlan& worker, Streams stream) const {
    const bool redirected = keeps_file(worker.local_rank, stream) &&
                            contains(spec_.redirects.for_rank(worker.local_rank), stream) &&
                            !contains(spec_.tee.for_rank(worker.local_rank), stream);
    return !redirected && spec_.local_ranks_filter.contains(worker.local_rank) &&
           spec_.ranks_filter.contains(worker.rank);
}

std::string RunLogs::file_name(int rank, Streams stream) const {
    return attempt_directory_ + "/" + std::to_string(rank) +
           (stream == Streams::out ? "/stdout.log" : "/stderr.log");
}

StreamPlan RunLogs::plan_stream(const WorkerPlan& worker, Streams stream, int restart_count) const {
    StreamPlan plan;
    plan.to_console = shows(worker, stream);
    const PrefixValues values{worker.rank, worker.local_rank, restart_count,
                              node_name_,  spec_.role,        node_name_};
    plan.prefix = render_line_prefix(
        spec_, values, colour_wanted(stream == Streams::out ? STDOUT_FILENO : STDERR_FILENO));
    if (!keeps_file(worker.local_rank, stream)) {
        return plan;
    }
    plan.file = file_name(worker.rank, stream);
    const bool out = stream == Streams::out;
    plan.duplicate_filters = out ? spec_.duplicate_stdout_filters : spec_.duplicate_stderr_filters;
    if (!plan.duplicate_filters.empty()) {
        plan.duplicate_file =
            attempt_directory_ + (out ? "/filtered_stdout.log" : "/filtered_stderr.log");
        plan.duplicate_prefix = render_line_prefix(spec_, values, false);
    }
    return plan;
}

std::string RunLogs::file_of(int rank, int local_rank) const {
    for (const Streams stream : {Streams::err, Streams::out}) {
        if (keeps_file(local_rank, stream)) {
            return file_name(rank, stream);
        }
    }
    return {};
}

}  // namespace ddrun::launcher
