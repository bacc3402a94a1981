#include "launcher/runtime/output/output_relay.hpp"

#include "launcher/runtime/output/relay_loop.hpp"
#include "rendezvous/platform/quiet_thread.hpp"

#include <unistd.h>

#include <condition_variable>
#include <future>
#include <system_error>
#include <thread>

namespace ddrun::launcher {

namespace {

constexpr auto answer_timeout = std::chrono::seconds(1);
// Beyond the reader's patience: a thread whose loop does not turn for so long hangs in a write to a
// dead disk or file server.
constexpr auto kernel_patience = std::chrono::seconds(3);

// Signals belong to the control thread. SIGPIPE and SIGXFSZ stay pending here, and a background job
// may write to its terminal (SIGTTOU).
std::thread start_output_thread(std::function<void()> body) {
    try {
        return start_quiet_thread("ddrun-output", std::move(body));
    } catch (const std::system_error& error) {
        throw std::system_error(error.code(), "output thread");
    }
}

}  // namespace

class OutputRelay::Thread {
  public:
    Thread(RelayOptions options, RelayCallbacks callbacks)
        : patience_(options.reader_patience),
          shared_(std::make_shared<Shared>(options, callbacks)) {
        thread_ = start_output_thread([shared = shared_] {
            shared->loop.run();
            const std::lock_guard lock(shared->mutex);
            shared->ended = true;
            shared->changed.notify_all();
            if (shared->finished && !shared->abandoned) shared->finished();
        });
    }
    ~Thread() { finish(); }

    void post(RelayLoop::Command command) {
        if (running()) shared_->loop.post(std::move(command));
    }
    // False once the thread has ended, also after begin_finish().
    [[nodiscard]] bool running() {
        if (running_ && finishing_ && ended()) finish();
        return running_;
    }

    template <class Answer>
    Answer ask(std::function<Answer(const RelayLoop&)> question) {
        if (!running()) return hung_ ? Answer{} : question(shared_->loop);
        auto promise = std::make_shared<std::promise<Answer>>();
        auto answer = promise->get_future();
        post(RelayLoop::Question(
            [promise, question](const RelayLoop& loop) { promise->set_value(question(loop)); }));
        return answer.wait_for(answer_timeout) == std::future_status::ready ? answer.get()
                                                                            : Answer{};
    }

    void begin_finish() {
        if (!std::exchange(finishing_, true)) post(RelayLoop::Finish{});
    }

    void finish() {
        if (!running_) return;
        begin_finish();
        if (!wait_for_end()) return abandon();
        running_ = false;
        thread_.join();
    }

    [[nodiscard]] bool stalled() {
        const unsigned beats = shared_->loop.beats();
        return std::exchange(seen_beats_, beats) == beats;
    }

    void abandon() {
        if (!std::exchange(running_, false)) return;
        hung_ = true;
        const std::lock_guard lock(shared_->mutex);
        shared_->abandoned = true;
        shared_->loop.abandon();
        thread_.detach();
    }

  private:
    // Also owned by the thread, which may outlive us when the kernel does not let it go.
    struct Shared {
        Shared(const RelayOptions& options, const RelayCallbacks& callbacks)
            : loop(options, callbacks), finished(callbacks.finished) {}
        RelayLoop loop;
        std::function<void()> finished;
        std::mutex mutex;
        std::condition_variable changed;
        bool ended = false;
        bool abandoned = false;
    };

    [[nodiscard]] bool ended() {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ended;
    }

    [[nodiscard]] bool wait_for_end() {
        std::unique_lock lock(shared_->mutex);
        unsigned beats = shared_->loop.beats();
        const auto over = [this] { return shared_->ended; };
        while (!shared_->changed.wait_for(lock, patience_ + kernel_patience, over)) {
            if (shared_->loop.beats() == beats) return false;
            beats = shared_->loop.beats();
        }
        return true;
    }

    Duration patience_;
    std::shared_ptr<Shared> shared_;
    std::thread thread_;
    bool running_ = true;
    bool finishing_ = false;
    bool hung_ = false;
    unsigned seen_beats_ = 0;
};

OutputRelay::OutputRelay(RelayOptions options, RelayCallbacks callbacks)
    : thread_(std::make_unique<Thread>(std::move(options), std::move(callbacks))) {}

OutputRelay::~OutputRelay() = default;

void OutputRelay::add_worker(WorkerStreams streams) {
    if (thread_->running()) return thread_->post(std::move(streams));
    for (const int fd : {streams.out.read_end, streams.err.read_end})
        if (fd >= 0) ::close(fd);
}

void OutputRelay::worker_ended(int round, int local_rank) {
    thread_->post(RelayLoop::WorkerEnded{round, local_rank});
}

void OutputRelay::say(std::string line) {
    thread_->post(RelayLoop::Say{std::move(line)});
}

std::vector<std::string> OutputRelay::tail(int round, int local_rank) {
    return thread_->ask<std::vector<std::string>>(
        [round, local_rank](const RelayLoop& loop) { return loop.tail(round, local_rank); });
}

std::vector<std::string> OutputRelay::losses() {
    return thread_->ask<std::vector<std::string>>(
        [](const RelayLoop& loop) { return loop.losses(); });
}

void OutputRelay::begin_finish() {
    thread_->begin_finish();
}

bool OutputRelay::stalled() {
    return thread_->stalled();
}

void OutputRelay::abandon() {
    thread_->abandon();
}

void OutputRelay::finish() {
    thread_->finish();
}

}  // namespace ddrun::launcher
