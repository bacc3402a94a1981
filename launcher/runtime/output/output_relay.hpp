#pragma once

#include "launcher/core/job_spec.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ddrun::launcher {

// What happens to one stream of one worker.
struct StreamPlan {
    int read_end = -1;  // our end of the worker's pipe; the relay owns and closes it
    bool to_console = true;
    std::string file;  // empty: no file. Opened O_APPEND|O_CREAT|O_CLOEXEC, never truncated
    std::string
        prefix;  // rendered, already with colour where the console is a terminal; not in files
    std::string duplicate_file;  // streams may share it: whole lines, never mixed. Lines containing
                                 // one of `duplicate_filters` also go here
    std::vector<std::string> duplicate_filters;
    std::string duplicate_prefix;  // before each line there; empty: none
};
struct WorkerStreams {
    int round = 0;
    int rank = 0;
    int local_rank = 0;
    StreamPlan out;
    StreamPlan err;
};

struct RelayOptions {
    int console_out = 1;  // flags of these descriptors are never changed
    int console_err = 2;
    std::size_t console_buffer = 4u << 20;  // bytes kept for a slow reader; then workers wait
    Duration reader_patience = std::chrono::seconds(
        5);  // a reader that takes nothing for so long: its lines are dropped and counted
    std::size_t line_limit =
        64u << 10;  // a longer line is passed on in pieces of this size, each prefixed
    int tail_lines = 20;
};

// Called on the output thread; must only hand over (post) and return.
struct RelayCallbacks {
    std::function<void(int round, int local_rank)>
        drained;  // both streams of an ended worker are done
    std::function<void(int round, int local_rank)>
        active;  // it wrote something; at most once a second
    std::function<void(std::string path, std::string words)>
        file_failed;  // first failure of each file
};

// Brings workers' output to console and files on a thread of its own: whole lines, bounded memory,
// never a worker blocked for ever, bytes in files exactly as written. All functions may be called
// from one other thread (the control thread) and return at once, unless it says "blocks".
class OutputRelay {
  public:
    OutputRelay(RelayOptions options, RelayCallbacks callbacks);
    ~OutputRelay();  // finish()
    OutputRelay(const OutputRelay&) = delete;
    OutputRelay& operator=(const OutputRelay&) = delete;

    void add_worker(WorkerStreams streams);
    // The worker was reaped: read what is in the pipes, for at most one second if somebody else
    // still holds them open, flush an unfinished line, close, call `drained`.
    void worker_ended(int round, int local_rank);

    // A line of ddrun's own, to stderr; never mixed into a worker's line.
    void say(std::string line);

    // Last lines of stderr (of stdout when stderr was silent), for the summary. Blocks up to 1 s
    // for the output thread; also after finish().
    [[nodiscard]] std::vector<std::string> tail(int round, int local_rank);

    // "console: 120 lines dropped", "PATH: 4096 bytes lost (No space left on device)".
    [[nodiscard]] std::vector<std::string> losses();

    // Flush everything (bounded by reader_patience without progress), stop the thread. Blocks.
    // Idempotent.
    void finish();

  private:
    class Thread;
    std::unique_ptr<Thread> thread_;
};

}  // namespace ddrun::launcher
