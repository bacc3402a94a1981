#pragma once

#include "launcher/runtime/output/console.hpp"
#include "launcher/runtime/output/output_relay.hpp"
#include "launcher/runtime/output/worker_stream.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ddrun::launcher {

// The output thread's body: one epoll over the workers' pipes, the consoles and a mailbox. Only
// `post`, `beats` and `abandon` may be called from other threads while `run` runs.
class RelayLoop {
  public:
    struct WorkerEnded {
        int round;
        int local_rank;
    };
    struct Say {
        std::string line;
    };
    struct Finish {};
    using Question = std::function<void(const RelayLoop&)>;
    using Command = std::variant<WorkerStreams, WorkerEnded, Say, Question, Finish>;

    RelayLoop(const RelayOptions& options, RelayCallbacks callbacks);

    void post(Command command);
    void run();  // until Finish is done

    // Rises with every turn of the loop: a value that stands still is a thread stuck in the kernel.
    [[nodiscard]] unsigned beats() const { return beats_.load(std::memory_order_relaxed); }
    // No callback is called any more, and `run` ends as soon as the kernel lets it.
    void abandon() { abandoned_.store(true); }

    [[nodiscard]] std::vector<std::string> tail(int round, int local_rank) const;
    [[nodiscard]] std::vector<std::string> losses() const;

  private:
    // One read: small enough to stay in the cache until it is written, large enough to make calls
    // rare.
    static constexpr std::size_t read_bytes = 256u << 10;

    using Key = std::pair<int, int>;  // round, local rank
    struct Worker;
    struct Source : WorkerStream {
        Source(WorkerStream stream, Worker* of) : WorkerStream(std::move(stream)), worker(of) {}
        Worker* worker;
        bool ready = false;    // a read may find something
        bool hung_up = false;  // no edge will come any more: read on to the end
        std::size_t owed = 0;  // bytes that were in the pipe when the worker ended
    };
    struct Worker {
        Worker(Key id, WorkerStream to_out, WorkerStream to_err)
            : key(id), out(std::move(to_out), this), err(std::move(to_err), this) {}
        Key key;
        Source out;
        Source err;
        std::optional<TimePoint> close_at;  // it ended; who holds its pipes longer is not heard
        TimePoint active_after{};

        [[nodiscard]] std::array<Source*, 2> sources() { return {&out, &err}; }
        [[nodiscard]] const TailBuffer& tail() const {
            return err.tail().empty() ? out.tail() : err.tail();
        }
    };

    void wait();
    [[nodiscard]] int timeout_ms() const;
    void take_commands();
    void perform(WorkerStreams& streams);
    void perform(WorkerEnded& ended);
    void perform(Say& say);
    void perform(Question& question);
    void perform(Finish& finish);

    [[nodiscard]] WorkerStream make_stream(StreamPlan& plan, Console& console);
    [[nodiscard]] std::shared_ptr<LogFile> file_at(const std::string& path);
    void share_line_memory();
    void watch(Source& source);
    void end(Worker& worker, TimePoint close_at);
    void mark_ready(Source& source);
    void close(Source& source);

    void serve_ready();
    [[nodiscard]] bool serve(Source& source);
    void note_activity(Source& source);
    void close_ended();
    [[nodiscard]] bool close_if_due(Worker& worker);
    void forget(Worker& worker);
    void release_unused_files();
    void serve_consoles();
    void write_obituary(const std::string& line);
    void report_failure(LogFile* file);
    [[nodiscard]] bool finished() const;

    RelayOptions options_;
    RelayCallbacks callbacks_;
    // stdout, stderr; one when both lead to one place.
    std::vector<std::unique_ptr<Console>> consoles_;
    UniqueFd epoll_;
    UniqueFd wake_;
    std::unique_ptr<char[]> read_buffer_;

    std::map<Key, std::unique_ptr<Worker>> workers_;
    std::vector<Source*> ready_;
    std::vector<Worker*> ending_;
    std::map<std::string, std::shared_ptr<LogFile>> files_;
    std::map<Key, std::vector<std::string>>
        tails_;  // of ended workers, this round's and the last's
    std::vector<std::string> file_losses_;
    PipeGrowth growth_;
    std::size_t line_limit_;
    Console::Owner next_owner_ = 1;
    TimePoint now_{};
    bool finishing_ = false;

    std::mutex mutex_;  // guards mailbox_ only
    std::vector<Command> mailbox_;
    std::atomic<unsigned> beats_{0};
    std::atomic<bool> abandoned_{false};
};

}  // namespace ddrun::launcher
