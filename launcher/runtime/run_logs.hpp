#pragma once

#include "launcher/core/job_spec.hpp"
#include "launcher/core/worker_plan.hpp"
#include "launcher/runtime/output/output_relay.hpp"

#include <string>
#include <utility>

namespace ddrun::launcher {

// Where the output of this run goes. Files lie under
//   <log-dir>/<job id>_<first 8 digits of the incarnation>/attempt_<restart>/<node>/<rank>/
// as stdout.log, stderr.log (and error.json, written by PyTorch), so that runs, attempts and nodes
// never meet; nothing that was there before is touched.
class RunLogs {
  public:
    // Throws Refusal(2), naming path and reason, when the directory the user named cannot be used.
    // Without a named one, a private temporary directory is made when --redirects or --tee asks.
    RunLogs(const JobSpec& spec, const std::string& node_name, const std::string& job_id,
            const std::string& incarnation);

    // Makes the directories of this attempt's workers. Empty: this attempt has the console only;
    // `take_warning()` then says why, once.
    [[nodiscard]] std::string begin_attempt(int restart_count, int first_rank, int workers);
    [[nodiscard]] std::string take_warning() { return std::exchange(warning_, {}); }

    // Console, file and prefix of one stream; `read_end` is still to be filled in.
    [[nodiscard]] StreamPlan plan_stream(const WorkerPlan& worker, Streams stream,
                                         int restart_count) const;

    [[nodiscard]] const std::string& directory() const { return run_directory_; }
    // Where `rank`'s stderr (stdout when only that is kept) is; empty: it has no file.
    [[nodiscard]] std::string file_of(int rank, int local_rank) const;

  private:
    [[nodiscard]] bool keeps_file(int local_rank, Streams stream) const;
    [[nodiscard]] bool shows(const WorkerPlan& worker, Streams stream) const;
    [[nodiscard]] std::string file_name(int rank, Streams stream) const;

    const JobSpec& spec_;
    std::string node_name_;
    std::string run_directory_;      // empty: no files
    std::string attempt_directory_;  // of this node; empty: none now
    std::string warning_;
};

}  // namespace ddrun::launcher
