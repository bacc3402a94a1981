#pragma once

#include "launcher/core/agent.hpp"
#include "launcher/core/job_spec.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace ddrun::launcher {

// What --status-file tells, as one JSON object.
struct StatusReport {
    std::string job_id;
    std::string incarnation;
    std::string state;  // starting, running, stopping, waiting, finished
    int pid = 0;        // ddrun's
    int round = 0;
    int restarts_used = 0;
    int max_restarts = 0;
    int world_size = 0;
    std::vector<WorkerRecord> workers;
    std::optional<int> exit_code;  // only when finished
    std::string cause;
};
[[nodiscard]] std::string to_json(const StatusReport& report);

// Nothing when a status file can be kept at `path`, else why not: something that is no plain file
// is there, or the directory cannot be written.
[[nodiscard]] std::optional<std::string> status_file_problem(const std::string& path);

// Rewrites the file whenever the text changes, by a new file and rename(), so that a reader always
// sees a whole one; a link is followed. On a thread of its own: a network file system may stall.
// The newest text wins.
class StatusFile {
  public:
    explicit StatusFile(const std::string& path);
    ~StatusFile();  // writes what is waiting, for at most one second
    StatusFile(const StatusFile&) = delete;
    StatusFile& operator=(const StatusFile&) = delete;

    void publish(std::string text);
    [[nodiscard]] const std::string& temporary_path() const { return shared_->temporary; }

  private:
    struct Shared {
        std::string path;
        std::string temporary;
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<std::string> next;
        bool over = false;
        bool ended = false;
    };
    static void write_loop(const std::shared_ptr<Shared>& shared);

    std::shared_ptr<Shared> shared_;  // the thread may outlive us when a write never returns
    std::string last_;
};

}  // namespace ddrun::launcher
