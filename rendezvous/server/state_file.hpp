#pragma once

#include "rendezvous/core/job_service.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// What a stand-alone server remembers over its own end: which jobs were running. All else comes
// back with the nodes. Without it a server that was restarted learns of a job only from the first
// node that says hello; if that is a fresh launch of the same id, the nodes of the job that still
// runs are refused.
namespace ddrun::rendezvous {

struct RememberedJob {
    std::string job_id;
    std::string incarnation;  // this and the rest: for whoever reads the file
    int round = 0;
    int restarts_used = 0;
    bool operator==(const RememberedJob&) const = default;
};

// Jobs that are not over.
[[nodiscard]] std::vector<RememberedJob> jobs_to_remember(const std::vector<JobStatus>& jobs);
[[nodiscard]] std::string state_text(const std::vector<RememberedJob>& jobs);  // JSON
// nullopt: this is no such text.
[[nodiscard]] std::optional<std::vector<RememberedJob>> parse_state(std::string_view text);

// The file cannot be used as one: a usage error, in words.
struct UnusableStateFile : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class StateFile {
  public:
    // `say`: what went wrong, in words; called on the writing thread. A disk may be slow, so
    // writing has a thread of its own, which nobody waits for.
    StateFile(std::string path, std::function<void(const std::string&)> say);
    ~StateFile();
    StateFile(const StateFile&) = delete;
    StateFile& operator=(const StateFile&) = delete;

    // What an earlier server wrote; empty where there is no file, or an empty one. Throws
    // UnusableStateFile.
    [[nodiscard]] std::vector<RememberedJob> read() const;
    // Replaces the file at once or not at all, soon; nothing is done where nothing changed.
    void write(std::string text);

  private:
    struct Shared;
    static void write_loop(const std::shared_ptr<Shared>& shared);

    std::shared_ptr<Shared> shared_;
    std::string last_;
};

}  // namespace ddrun::rendezvous
