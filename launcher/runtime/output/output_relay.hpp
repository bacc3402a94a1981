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
    std::string file;    // empty: none. Appended to, created with the umask's mode, never truncated
    std::string prefix;  // rendered (expand_prefix), with colour where wanted; never in `file`
    std::string duplicate_file;  // lines that contain one of `duplicate_filters` also go here,
                                 // whole; several streams may name the same file
    std::vector<std::string> duplicate_filters;
    std::string duplicate_prefix;  // before each line there, rendered; empty: none
};

struct WorkerStreams {
    int round = 0;
    int rank = 0;
    int local_rank = 0;  // (round, local_rank) is unique
    StreamPlan out;
    StreamPlan err;
};

struct RelayOptions {
    int console_out = 1;  // flags of these descriptors are never changed; a closed one is no error,
    int console_err = 2;  // but its number must not be given to something else afterwards
    // Bytes kept for a slow reader; when they are full, workers wait.
    std::size_t console_buffer = 4u << 20;
    // A reader that takes nothing for so long is not waited for any more: lines are dropped and
    // counted.
    Duration reader_patience = std::chrono::seconds(5);
    // A longer line is passed on in pieces of this size, each with the prefix. With more than 64
    // workers they share 8 MiB: 16 KiB each for 256 workers.
    std::size_t line_limit = 64u << 10;
    int tail_lines = 20;
};

// Called on the output thread; must only hand over (post) and return.
struct RelayCallbacks {
    // Both streams of an ended worker are done; once for each `worker_ended`.
    std::function<void(int round, int local_rank)> drained;
    // It wrote something; at most ten times a second.
    std::function<void(int round, int local_rank)> active;
    // First failure of each file: "PATH" "cannot be written: No space left on device; ...".
    std::function<void(std::string path, std::string words)> file_failed;
    // Everything is flushed or given up, after begin_finish().
    std::function<void()> finished;
};

// Brings workers' output to console and files on a thread of its own: whole lines, bounded memory,
// never a worker blocked for ever, bytes in files exactly as written. All functions may be called
// from one other thread (the control thread) and return at once, unless it says "blocks".
class OutputRelay {
  public:
    OutputRelay(RelayOptions options, RelayCallbacks callbacks);  // throws std::system_error
    ~OutputRelay();                                               // finish()
    OutputRelay(const OutputRelay&) = delete;
    OutputRelay& operator=(const OutputRelay&) = delete;

    void add_worker(WorkerStreams streams);
    // The worker was reaped: read what is in the pipes, for at most one second if somebody else
    // still holds them open, flush an unfinished line, close, call `drained`. A slow reader of the
    // console delays it for as long as it moves.
    void worker_ended(int round, int local_rank);

    // A line of ddrun's own, to stderr; never mixed into a worker's line.
    void say(std::string line);

    // Last lines of stderr (of stdout when stderr was silent), for the summary; of this round and
    // the one before. Blocks up to 1 s for the output thread; also after finish().
    [[nodiscard]] std::vector<std::string> tail(int round, int local_rank);

    // "console: 120 lines dropped (...)", "PATH: 4096 bytes lost (No space left on device)". Blocks
    // like tail().
    [[nodiscard]] std::vector<std::string> losses();

    // Like finish(), but returns at once; `finished` is called in the end.
    void begin_finish();
    // True when the thread has not turned since the last call: a disk does not let it go. An idle
    // thread does not turn either, one that is finishing does so every reader_patience.
    [[nodiscard]] bool stalled();
    // Leaves a stalled thread behind; it calls nobody any more.
    void abandon();

    // Flush everything, stop the thread, close what it opened. Blocks: for as long as the readers
    // move plus reader_patience; 3 s more when a disk does not let the thread go (it is then left
    // behind and calls nobody). Idempotent.
    void finish();

  private:
    class Thread;
    std::unique_ptr<Thread> thread_;
};

}  // namespace ddrun::launcher
